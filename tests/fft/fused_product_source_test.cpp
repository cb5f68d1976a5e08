// Runs one block of an inverse with a fused product on the CPU and compares it with the product and the inverse by
// definition.
#include "fft/cuda/planes/fused_product_source.h"

#include <gtest/gtest.h>

#include <complex>

#include "fft/cuda/planes/plane_arguments.h"
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

using Spectrum = std::vector<std::complex<double>>;

template <int N, class Source>
void expect_convolution(const ConvProblem& problem, const FrequencyGrid& grid) {
  SCOPED_TRACE(join(to_string(problem), ", ", to_string(grid)));
  Context host;
  const SpectralBackend plain = plain_backend({});
  SpectralTransform& transform = *plain.transforms.front();
  const int images = problem.batch - 1;  // the last ones
  const Planes x = planes_of(problem, ConvOperand::x, grid, 1, images), w = planes_of(problem, ConvOperand::w, grid),
               y = planes_of(problem, ConvOperand::y, grid, 1, images);
  const auto spectrum_of = [&](const Planes& planes, const std::vector<float>& values) {
    Spectrum half(static_cast<std::size_t>(grid.bins() * planes.matrix_rows() * planes.columns));
    transform.forward(host, planes, values.data(), half.data(), nullptr);
    return half;
  };
  const Spectrum a = spectrum_of(x, noise(count_of(problem.input_shape()), 1)),
                 b = spectrum_of(w, noise(count_of(problem.weight_shape()), 2));

  FrequencyGemm gemm{grid.bins(), y.matrix_rows(), y.columns, x.columns, false, false, true, true, false};
  Spectrum c(static_cast<std::size_t>(gemm.bins * gemm.m * gemm.n));
  plain.products.front()->run(host, gemm, a.data(), b.data(), c.data(), nullptr);
  gemm.bins = PlaneSize<N, N>::bins;
  const std::vector<float> packed_a = packed_bins(a, N, N, gemm.m * gemm.k),
                           packed_b = packed_bins(b, N, N, gemm.n * gemm.k);
  const std::vector<float> bias = noise(y.columns);
  for (const PlaneEpilogue& epilogue : {PlaneEpilogue{bias.data(), true}, PlaneEpilogue{}}) {
    std::vector<float> expected(static_cast<std::size_t>(count_of(problem.output_shape())), not_a_number),
        result = expected;
    transform.inverse(host, y, c.data(), expected.data(), epilogue, nullptr);
    follow_inverse<N, N, Source>(Source::arguments(plane_target(y, TileMap(y), false, result.data(), epilogue), gemm,
                                                   packed_a.data(), packed_b.data()));
    expect_close(result, expected, 5e-6f);  // NaN where another slice lies
  }
}

template <int N, class Source>
void expect_whole(const char* text) {
  const ConvProblem problem = conv_problem(text);
  expect_convolution<N, Source>(problem, whole_plane(problem, N, N));
}

template <int N, class Source>
void expect_tiles(const char* text) {
  const ConvProblem problem = conv_problem(text);
  expect_convolution<N, Source>(problem, tiled(problem, N, N));
}

TEST(FusedProductSource, SumsChannelsOfWholePlanes) {
  expect_whole<8, FusedProductSource<1, 4, 8>>("3x1x6x7 * 11x1x3x3 pad 1");
  expect_whole<14, FusedProductSource<2, 4, 4>>("4x2x13x13 * 10x2x3x3 pad 1");
  expect_whole<10, FusedProductSource<3, 2, 4>>("4x3x8x8 * 5x3x3x3 pad 1");  // rows that lie at even places
  expect_whole<30, FusedProductSource<4, 4, 4>>("2x4x26x25 * 4x4x5x5 pad 2");
}

TEST(FusedProductSource, SumsChannelsOfTiles) {
  expect_tiles<8, FusedProductSource<3, 4, 8>>("3x3x20x17 * 9x3x3x3 pad 1");
  expect_tiles<16, FusedProductSource<1, 2, 4>>("2x1x30x41 * 6x1x7x7 pad 3");
  expect_tiles<12, FusedProductSource<4, 4, 4>>("3x4x11x30 * 3x4x5x5");
}

}  // namespace
}  // namespace twiddle::small_fft
