// Runs one block of a depthwise convolution's inverse on the CPU and compares it with the product and the inverse by
// definition.
#include "fft/cuda/planes/channel_product_source.h"

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

template <int N, int P>
void expect_pass(const ConvProblem& problem, const FrequencyGrid& grid, bool forward) {
  SCOPED_TRACE(join(to_string(problem), ", ", to_string(grid), forward ? "" : ", backwards"));
  Context host;
  const SpectralBackend plain = plain_backend({});
  SpectralTransform& transform = *plain.transforms.front();
  const ConvOperand from = forward ? ConvOperand::x : ConvOperand::y, to = forward ? ConvOperand::y : ConvOperand::x;
  const int images = problem.batch - 1;  // the last ones
  const Planes planes = planes_of(problem, from, grid, 1, images), kernels = planes_of(problem, ConvOperand::w, grid),
               results = planes_of(problem, to, grid, 1, images);
  const auto spectrum_of = [&](const Planes& of, const Shape& shape, int seed) {
    Spectrum half(static_cast<std::size_t>(grid.bins() * of.matrix_rows() * of.columns));
    transform.forward(host, of, noise(count_of(shape), seed).data(), half.data(), nullptr);
    return half;
  };
  const Spectrum a = spectrum_of(planes, shape_of(problem, from), 1),
                 b = spectrum_of(kernels, problem.weight_shape(), 2);
  const FrequencyGemm gemm{.bins = grid.bins(),
                           .m = results.matrix_rows(),
                           .n = 1,
                           .k = 1,
                           .transpose_b = forward,
                           .conjugate_b = forward,
                           .groups = problem.groups};
  Spectrum c(static_cast<std::size_t>(gemm.bins * gemm.m * gemm.groups));
  plain.products.front()->run(host, gemm, a.data(), b.data(), c.data(), nullptr);
  const std::vector<float> packed_a = packed_bins(a, N, N, gemm.m * gemm.groups),
                           packed_b = packed_bins(b, N, N, gemm.groups), bias = noise(problem.groups);
  for (const PlaneEpilogue& epilogue : {PlaneEpilogue{forward ? bias.data() : nullptr, forward}, PlaneEpilogue{}}) {
    std::vector<float> expected(static_cast<std::size_t>(count_of(shape_of(problem, to))), not_a_number),
        result = expected;
    transform.inverse(host, results, c.data(), expected.data(), epilogue, nullptr);
    for_each_colour(results, packed_a.data(), result.data(), epilogue, [&](const InverseArguments& arguments) {
      follow_inverse<N, N, ChannelProductSource<P>>(ChannelProductArguments{
          arguments, reinterpret_cast<const Complex*>(packed_b.data()), problem.groups, forward ? -1.0f : 1.0f});
    });
    expect_close(result, expected, 5e-6f);  // NaN where another slice lies
  }
}

template <int N, int P>
void expect_passes(const char* text, bool tiles = false) {
  const ConvProblem problem = conv_problem(text);
  const FrequencyGrid grid = tiles ? tiled(problem, N, N) : whole_plane(problem, N, N);
  for (const bool forward : {true, false}) expect_pass<N, P>(problem, grid, forward);
}

TEST(ChannelProductSource, MultipliesPlanesByChannelKernels) {
  expect_passes<8, 32>("3x11x6x7 * 11x1x3x3 pad 1 groups 11");
  expect_passes<14, 8>("4x5x7x7 * 5x1x13x13 pad 6 groups 5");
  expect_passes<28, 8>("3x9x14x14 * 9x1x27x27 pad 13 groups 9");
  expect_passes<42, 8>("2x6x28x28 * 6x1x29x29 pad 14 groups 6");
}

TEST(ChannelProductSource, AddsUpTiles) {
  expect_passes<8, 32>("3x3x20x17 * 3x1x3x3 pad 1 groups 3", true);
  expect_passes<24, 8>("2x4x40x41 * 4x1x13x13 pad 6 groups 4", true);
}

}  // namespace
}  // namespace twiddle::small_fft
