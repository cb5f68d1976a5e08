// Runs the steps of one block of the plane transforms on the CPU and compares spectra and planes with their definition.
#include "fft/cuda/planes/plane_arguments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/conv_problem.h"
#include "tests/support/follow_planes.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"
#include "tests/support/packed_bins.h"
#include "tests/support/plain_backend.h"

namespace twiddle::small_fft {
namespace {

template <int H, int W, int P>
void expect_transforms(const ConvProblem& problem, const FrequencyGrid& grid) {
  SCOPED_TRACE(join(to_string(problem), ", ", to_string(grid)));
  Context host;
  const SpectralBackend by_definition = plain_backend({});
  SpectralTransform& plain = *by_definition.transforms.front();
  for (const ConvOperand operand : {ConvOperand::x, ConvOperand::w, ConvOperand::y}) {
    SCOPED_TRACE(to_string(operand));
    const bool weights = operand == ConvOperand::w;
    const Planes planes = planes_of(problem, operand, grid, weights ? 0 : 1, weights ? 0 : problem.batch - 1);
    const std::vector<float> source = noise(count_of(shape_of(problem, operand)));

    const std::int64_t pitch = planes.matrix_rows() * planes.columns;
    std::vector<std::complex<double>> half(static_cast<std::size_t>(planes.grid.bins() * pitch));
    plain.forward(host, planes, source.data(), half.data(), nullptr);
    const std::vector<float> expected = packed_bins(half, H, W, pitch);
    std::vector<Complex> spectrum(static_cast<std::size_t>(PlaneSize<H, W>::bins * pitch),
                                  Complex{not_a_number, not_a_number});
    follow_forward<H, W, P>(forward_arguments(planes, source.data(), spectrum.data()));
    const auto* const numbers = reinterpret_cast<const float*>(spectrum.data());
    const std::vector<float> bins(numbers, numbers + 2 * spectrum.size());
    ASSERT_EQ(bins.size(), expected.size());
    EXPECT_LE(relative_error(bins, expected), 5e-7);

    std::vector<float> bias(static_cast<std::size_t>(planes.columns));
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = 0.25f * static_cast<float>(i % 3);
    const PlaneEpilogue epilogue = operand == ConvOperand::y ? PlaneEpilogue{bias.data(), true} : PlaneEpilogue{};
    std::vector<float> planes_back(source.size(), not_a_number), result = planes_back;
    plain.inverse(host, planes, half.data(), planes_back.data(), epilogue, nullptr);
    for_each_colour(planes, spectrum.data(), result.data(), epilogue, follow_inverse<H, W, StoredSource<P>>);
    expect_close(result, planes_back, 2e-6f);  // NaN where another slice or group lies
  }
}

TEST(PlaneFft, TransformsWholePlanes) {
  const auto whole = [](const char* text, auto height, auto width) {
    const ConvProblem problem = conv_problem(text);
    expect_transforms<height, width, 4>(problem, whole_plane(problem, height, width));
  };
  whole("2x2x1x1 * 3x2x1x1", Index<2>{}, Index<2>{});
  whole("3x4x3x4 * 2x4x2x2", Index<4>{}, Index<4>{});
  whole("3x4x7x6 * 6x2x3x2 pad 1 groups 2", Index<8>{}, Index<8>{});
  whole("2x3x8x8 * 4x3x3x3", Index<8>{}, Index<8>{});  // rows that lie at even places
  whole("2x5x13x13 * 3x5x3x3 pad 1", Index<14>{}, Index<14>{});
  whole("2x3x16x24 * 8x3x5x1 pad 2x0", Index<18>{}, Index<24>{});
  whole("4x3x11x20 * 5x3x5x7 pad 2x0", Index<20>{}, Index<28>{});
  whole("2x1x30x28 * 2x1x4x4 pad 0x2", Index<30>{}, Index<30>{});
  whole("2x2x27x9 * 2x2x5x5 pad 2", Index<32>{}, Index<12>{});
  whole("2x2x33x61 * 1x2x3x3 pad 1", Index<36>{}, Index<64>{});
}

TEST(PlaneFft, TransformsAndAddsOverlappingTiles) {
  const auto in_tiles = [](const char* text, auto height, auto width) {
    const ConvProblem problem = conv_problem(text);
    expect_transforms<height, width, 8>(problem, tiled(problem, height, width));
  };
  in_tiles("2x3x20x31 * 4x3x3x3 pad 1", Index<8>{}, Index<8>{});
  in_tiles("2x3x30x30 * 4x3x5x3 pad 2x1", Index<8>{}, Index<16>{});
  in_tiles("2x4x17x19 * 6x2x7x7 pad 3 groups 2", Index<8>{}, Index<10>{});  // seven colours by four
  in_tiles("3x2x24x24 * 8x2x3x3 pad 1", Index<14>{}, Index<14>{});
  in_tiles("2x2x9x60 * 1x2x3x3", Index<12>{}, Index<16>{});
  in_tiles("2x2x47x51 * 3x2x3x3 pad 1", Index<24>{}, Index<24>{});  // one element at a time, and below in pairs
  in_tiles("2x2x48x52 * 2x2x5x5 pad 2", Index<24>{}, Index<32>{});
}

// Covers all that the block reads, and nothing after the last bin.
TEST(PlaneFft, BlockLinesMatchBins) {
  constexpr int side = 8, together = 32;
  const ConvProblem problem = conv_problem("40x3x8x8 * 2x3x3x3");
  const Planes planes = planes_of(problem, ConvOperand::x, whole_plane(problem, side, side));
  const std::int64_t pitch = planes.matrix_rows() * planes.columns, bins = PlaneSize<side, side>::bins;
  std::vector<Complex> spectrum(static_cast<std::size_t>(bins * pitch));
  const InverseArguments arguments{plane_target(planes, TileMap(planes), false, nullptr, {}), pitch, spectrum.data(),
                                   true};
  constexpr int line = 16, threads = 7;
  const auto lines_of = [&](std::int64_t block) {
    std::vector<std::int64_t> lines;
    for (int thread = 0; thread < threads; ++thread)
      StoredSource<together>::for_each_line(arguments, block, static_cast<int>(bins), thread, threads,
                                            [&](const Complex* at) { lines.push_back(at - spectrum.data()); });
    std::sort(lines.begin(), lines.end());
    return lines;
  };
  std::vector<std::int64_t> expected;
  for (std::int64_t bin = 0; bin < bins; ++bin)
    for (int plane = 0; plane < together; plane += line) expected.push_back(bin * pitch + 2 * together + plane);
  EXPECT_EQ(lines_of(2), expected);
  EXPECT_EQ(lines_of(3).size(), 0u) << "of 120 planes 24 are left for it";
}

TEST(PlaneFft, ZeroesMaskedElements) {
  for (const char* const text : {"2x3x36x12 * 2x3x1x1", "2x3x35x11 * 2x3x1x1"}) {  // in pairs, and one by one
    const ConvProblem problem = conv_problem(text);
    const Planes planes = planes_of(problem, ConvOperand::x, whole_plane(problem, 36, 12));
    const std::int64_t count = count_of(problem.input_shape());
    const std::vector<float> source = noise(count, 1);
    std::vector<float> mask = noise(count, 2), passed = source;
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (i % 4 == 0 || i % 5 == 0) mask[i] = i % 4 == 0 ? 0 : not_a_number;
      if (!(mask[i] > 0)) passed[i] = 0;
    }
    const auto spectrum_of = [&](const PlaneSource& from) {
      std::vector<float> bins(static_cast<std::size_t>(2 * PlaneSize<36, 12>::bins * 6), not_a_number);
      follow_forward<36, 12, 4>(forward_arguments(planes, from, bins.data()));
      return bins;
    };
    EXPECT_EQ(spectrum_of({source.data(), mask.data()}), spectrum_of(passed.data()));
  }
}

}  // namespace
}  // namespace twiddle::small_fft
