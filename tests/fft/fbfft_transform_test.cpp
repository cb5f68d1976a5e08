// The transforms of the engine fbfft, run on a GPU: plane_fft_test.cpp runs their blocks on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "fft/spectral_engine.h"
#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/conv_problem.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"
#include "tests/support/on_gpu.h"
#include "tests/support/packed_bins.h"
#include "tests/support/plain_backend.h"
#include "tests/support/plane_sizes.h"

namespace twiddle {
namespace {

constexpr double largest_fbfft_error = 5e-7;

std::vector<float> without_nan(std::vector<float> values) {
  std::erase_if(values, [](float value) { return std::isnan(value); });
  return values;
}

class Fbfft : public OnGpu {
 protected:
  SpectralTransform& transform() { return *backend_.transforms.front(); }
  void expect_transforms(const ConvProblem& problem, const FrequencyGrid& grid);

 private:
  SpectralBackend backend_ = fbfft();
};

void Fbfft::expect_transforms(const ConvProblem& problem, const FrequencyGrid& grid) {
  Context host;
  const SpectralBackend by_definition = plain_backend({});
  SpectralTransform& plain = *by_definition.transforms.front();
  for (const ConvOperand operand : {ConvOperand::x, ConvOperand::w, ConvOperand::y}) {
    SCOPED_TRACE(join(to_string(operand), " of ", to_string(problem), ", ", to_string(grid)));
    const bool weights = operand == ConvOperand::w;
    const Planes planes = planes_of(problem, operand, grid, weights ? 0 : 1, weights ? 0 : problem.batch - 1);
    const std::vector<float> values = noise(count_of(shape_of(problem, operand)));
    const Tensor source = on_device(values);

    const std::int64_t pitch = planes.matrix_rows() * planes.columns;
    std::vector<std::complex<double>> half(static_cast<std::size_t>(planes.grid.bins() * pitch));
    plain.forward(host, planes, values.data(), half.data(), nullptr);
    Tensor spectrum = poisoned(transform().spectrum_bytes(planes));
    transform().forward(*ctx, planes, source.read(), spectrum.write(), nullptr);
    const std::vector<float> bins = on_host(spectrum);
    const std::vector<float> expected = packed_bins(half, grid.height, grid.width, pitch);
    ASSERT_EQ(bins.size(), expected.size());
    EXPECT_LE(relative_error(bins, expected), largest_fbfft_error);

    const bool outputs = operand == ConvOperand::y;
    const std::vector<float> bias_values(static_cast<std::size_t>(planes.columns), 0.25f);
    const Tensor bias = on_device(bias_values);
    std::vector<float> planes_back(values.size(), not_a_number);
    plain.inverse(host, planes, half.data(), planes_back.data(),
                  outputs ? PlaneEpilogue{bias_values.data(), true} : PlaneEpilogue{}, nullptr);
    Tensor target = poisoned(source.bytes());
    transform().inverse(*ctx, planes, spectrum.read(), target.write(),
                        outputs ? PlaneEpilogue{bias.read(), true} : PlaneEpilogue{}, nullptr);
    const std::vector<float> back = on_host(target);
    expect_close(back, planes_back, 2e-6f);  // NaN where another slice or group lies
    EXPECT_LE(relative_error(without_nan(back), without_nan(planes_back)), largest_fbfft_error);
    EXPECT_EQ(on_host(spectrum), bins) << "another pass may need the spectrum";
  }
}

TEST_F(Fbfft, TransformsWholePlanesOfAllSizes) {
  for (const auto& [height, width] : plane_sizes()) {
    const int least = std::min(height, width);
    ConvProblem problem = conv_problem(least < 8 ? "3x5x1x1 * 4x5x1x1" : "3x5x1x1 * 4x5x3x3 pad 1");
    for (const int smaller : {1, 2, 3}) {  // odd planes and even ones
      problem.height = std::max(1, height - smaller), problem.width = std::max(1, width - smaller);
      expect_transforms(problem, whole_plane(problem, height, width));
    }
  }
  const ConvProblem exact = conv_problem("3x8x32x32 * 16x8x9x9");  // rows that lie at even places
  expect_transforms(exact, whole_plane(exact, 32, 32));
  const ConvProblem grouped = conv_problem("3x6x13x13 * 8x3x3x3 pad 1 groups 2");
  expect_transforms(grouped, whole_plane(grouped, 14, 14));
}

TEST_F(Fbfft, TransformsTilesOfAllSizes) {
  for (const auto& [height, width] : plane_sizes()) {
    const int least = std::min(height, width), kernel = least < 8 ? 2 : 5;
    for (const int pad : {1, 2}) {  // tiles at odd places and at even ones
      ConvProblem problem = conv_problem("2x3x1x1 * 4x3x1x1");
      problem.pad_h = problem.pad_w = pad;
      problem.height = 2 * height + 3, problem.width = std::max(width, 12) + 6 + pad;
      problem.kernel_h = problem.kernel_w = kernel;
      if (height > 40) problem.height = height + 9;
      expect_transforms(problem, tiled(problem, height, width));
    }
  }
}

// Checks linearity, Parseval's theorem and the inverse on planes whose bytes need more than 32 bits.
TEST_F(Fbfft, TransformsMoreThanTwoGigabytes) {
  const ConvProblem problem = conv_problem("2200x1024x16x16 * 1x1024x1x1");
  const Planes planes = planes_of(problem, ConvOperand::x, whole_plane(problem, 16, 16));
  Tensor spectrum = poisoned(transform().spectrum_bytes(planes));
  ASSERT_GT(spectrum.bytes(), std::size_t(1) << 31);
  const std::int64_t of_image = 1024 * 256;
  const std::vector<float> image = noise(of_image);
  Tensor x(stream(), problem.input_shape());
  for (int i = 0; i < problem.batch; ++i) stream().copy(x.write() + i * of_image, image.data(), of_image * 4);
  transform().forward(*ctx, planes, x.read(), spectrum.write(), nullptr);
  Tensor back = poisoned(x.bytes());
  transform().inverse(*ctx, planes, spectrum.read(), back.write(), {}, nullptr);
  for (const int i : {0, 1, 1100, 2198, 2199}) {
    SCOPED_TRACE(i);
    EXPECT_LE(relative_error(on_host(back.read() + i * of_image, of_image), image), largest_fbfft_error);
  }
  const ConvProblem one = conv_problem("1x1024x16x16 * 1x1024x1x1");
  const Planes few = planes_of(one, ConvOperand::x, whole_plane(one, 16, 16));
  Tensor alone = poisoned(transform().spectrum_bytes(few));
  transform().forward(*ctx, few, x.read(), alone.write(), nullptr);
  const std::int64_t bins = transform().bins(planes.grid);
  double in_planes = 0, in_bins = 0;
  for (const float value : image) in_planes += double(value) * value;
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    const std::vector<float> values = on_host(alone.read() + 2 * bin * 1024, 2 * 1024);
    EXPECT_EQ(on_host(spectrum.read() + 2 * (bin * 2200 + 2199) * 1024, 2 * 1024), values) << "bin " << bin;
    const bool half_row = bin < 18;  // rows 0 and 8, of which columns 0 and 8 stand for themselves alone
    const double times = half_row && bin % 9 % 8 == 0 ? 1 : 2;
    for (const float value : values) in_bins += times * double(value) * value;
  }
  EXPECT_NEAR(in_bins / 256 / in_planes, 1, 1e-6);
}

TEST_F(Fbfft, RunsInCapturedGraph) {
  const ConvProblem problem = conv_problem("2x3x24x24 * 4x3x3x3 pad 1");
  const Planes planes = planes_of(problem, ConvOperand::x, tiled(problem, 8, 8));
  const Tensor x = on_device(noise(count_of(problem.input_shape())));
  Tensor spectrum = poisoned(transform().spectrum_bytes(planes));
  Tensor plain = poisoned(x.bytes()), replayed = poisoned(x.bytes());
  const auto there_and_back = [&](Tensor& target) {
    transform().forward(*ctx, planes, x.read(), spectrum.write(), nullptr);
    transform().inverse(*ctx, planes, spectrum.read(), target.write(), {}, nullptr);
  };
  there_and_back(plain);
  const auto graph = stream().capture([&] { there_and_back(replayed); });
  ASSERT_NE(graph, nullptr);
  graph->replay();
  EXPECT_EQ(on_host(replayed), on_host(plain));
}

// Needs no GPU.
TEST(FbfftGrids, AreWholePlanesAndTiles) {
  const SpectralBackend backend = fbfft();
  if (backend.transforms.empty()) GTEST_SKIP() << "a build without CUDA";
  const auto grids = [&](const char* text) { return backend.transforms.front()->grids(conv_problem(text)); };
  const auto has = [](const std::vector<FrequencyGrid>& all, const std::string& grid) {
    return std::any_of(all.begin(), all.end(), [&](const FrequencyGrid& each) { return to_string(each) == grid; });
  };
  EXPECT_TRUE(has(grids("128x384x13x13 * 384x384x3x3 pad 1"), "14x14"));
  EXPECT_GT(grids("128x64x224x224 * 64x64x3x3 pad 1").front().tiles(), 1);
  EXPECT_FALSE(grids("1x1x1x1 * 1x1x1x1").empty());
  EXPECT_TRUE(grids("1x1x99x99 * 1x1x65x65").empty());
  EXPECT_LE(grids("128x64x224x224 * 64x64x3x3 pad 1").size(), 8u);
}

}  // namespace
}  // namespace twiddle
