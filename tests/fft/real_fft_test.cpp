// The CPU's real transforms of planes, for every instruction set that this processor has, against the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <numbers>
#include <string>

#include "fft/cpu/cpu_backend.h"
#include "fft/cpu/kernels/columns.h"
#include "tests/support/check_close.h"
#include "tests/support/every_instruction_set.h"
#include "tests/support/noise.h"

namespace twiddle {
namespace {

using Number = std::complex<double>;

struct RealFft : EveryInstructionSet {
  Context ctx;

  // Returns rows x columns planes of height x width with the usual strides, in a grid of that size or larger.
  static Planes planes(int rows, int columns, int height, int width, const FrequencyGrid& grid) {
    Planes planes;
    planes.rows = rows, planes.columns = columns, planes.height = height, planes.width = width;
    planes.column_stride = height * width, planes.row_stride = columns * planes.column_stride;
    planes.window_h = height, planes.window_w = width;
    planes.grid = grid;
    return planes;
  }
  static Planes planes(int rows, int columns, int height, int width) {
    return planes(rows, columns, height, width, {height, width, 1, 1, height, width});
  }
  std::shared_ptr<void> forward(CpuTransform& transform, const Planes& planes, const std::vector<float>& source,
                                const float* mask = nullptr) {
    auto spectrum = ctx.stream->allocate(transform.spectrum_bytes(planes));
    const auto scratch = ctx.stream->allocate(transform.scratch_bytes(planes));
    transform.forward(ctx, planes, {source.data(), mask}, spectrum.get(), scratch.get());
    return spectrum;
  }
  // Inverts the product with a unit impulse, whose bins all equal the scale: the result is the input of the spectrum.
  std::vector<float> inverse(CpuTransform& transform, const Planes& planes, const void* spectrum, std::size_t count,
                             const PlaneEpilogue& epilogue = {}) {
    const auto* const bins = static_cast<const float*>(spectrum);
    std::vector<float> product(bins, bins + transform.spectrum_bytes(planes) / sizeof(float));
    for (float& number : product) number *= static_cast<float>(CpuTransform::scale(planes.grid));
    const auto scratch = ctx.stream->allocate(transform.scratch_bytes(planes));
    std::vector<float> target(count, std::numeric_limits<float>::quiet_NaN());
    transform.inverse(ctx, planes, product.data(), target.data(), epilogue, scratch.get());
    return target;
  }
  // Bin (i, j) of plane (row, column).
  static Number bin(const Planes& planes, const void* spectrum, int i, int j, int row, int column) {
    const StoredColumn stored = stored_column(planes.grid.height, planes.grid.width, j);
    if (i >= stored.bins) return std::conj(bin(planes, spectrum, planes.grid.height - i, j, row, column));
    const int lanes = kernels_for(GetParam()).lanes;
    const SpectrumLayout layout = layout_of(planes.matrix_rows(), planes.columns, lanes);
    const float* at = static_cast<const float*>(spectrum) + (stored.first + i) * layout.bin_stride +
                      (row * layout.blocks + column / lanes) * 2 * lanes + column % lanes;
    return Number(at[0], at[lanes]) / CpuTransform::scale(planes.grid);
  }
};

// The relative error of all bins of the first and the last plane.
double spectrum_error(const Planes& p, const std::vector<float>& source,
                      const std::function<Number(int i, int j, int row, int column)>& bin) {
  double difference = 0, size = 0;
  for (const auto& [row, column] : {std::pair<int, int>{0, 0}, {int(p.rows) - 1, int(p.columns) - 1}}) {
    const float* plane = source.data() + row * p.row_stride + column * p.column_stride;
    for (int j = 0; j <= p.grid.width / 2; ++j) {
      std::vector<Number> sums;  // of each row, at this column of bins
      for (int y = 0; y < p.height; ++y) {
        Number& sum = sums.emplace_back();
        for (int x = 0; x < p.width; ++x)
          sum += double(plane[y * p.width + x]) *
                 std::polar(1.0, -2 * std::numbers::pi * (j * x % p.grid.width) / p.grid.width);
      }
      for (int i = 0; i < p.grid.height; ++i) {
        Number expected;
        for (int y = 0; y < p.height; ++y)
          expected += sums[y] * std::polar(1.0, -2 * std::numbers::pi * (i * y % p.grid.height) / p.grid.height);
        difference += std::norm(bin(i, j, row, column) - expected);
        size += std::norm(expected);
      }
    }
  }
  return std::sqrt(difference / size);
}

TEST_P(RealFft, MatchesDefinition) {
  CpuTransform transform(GetParam());
  for (int points = 1; points <= 128; ++points) {
    if (!FftPlan::can(points)) continue;
    SCOPED_TRACE(points);
    for (const Planes& p : {planes(1, 3, points, 6), planes(2, 1, 3, 2 * points)}) {
      const std::vector<float> source = noise(p.rows * p.row_stride);
      const auto spectrum = forward(transform, p, source);
      EXPECT_LT(
          spectrum_error(p, source,
                         [&](int i, int j, int row, int column) { return bin(p, spectrum.get(), i, j, row, column); }),
          4e-7);
    }
  }
}

// The bins of a plane of n real values hold at most n non-zero values: imaginary parts of real bins are zero.
TEST_P(RealFft, StoresNoBinTwice) {
  CpuTransform transform(GetParam());
  const auto bins = [&](int height, int width) { return transform.bins({height, width, 1, 1, height, width}); };
  EXPECT_EQ(bins(36, 36), 36 * 18 + 2);
  EXPECT_EQ(bins(8, 16), 8 * 8 + 2);
  EXPECT_EQ(bins(15, 14), 15 * 7 + 1);
  EXPECT_EQ(bins(15, 5), (15 * 5 + 1) / 2);
  EXPECT_EQ(bins(1, 1), 1);
}

// Adjacent planes of one image and of the next: one block of them, and more than one.
TEST_P(RealFft, KeepsPlanesIndependent) {
  CpuTransform transform(GetParam());
  for (const int points : {5, 16, 30}) {
    const Planes p = planes(3, 37, points, points, {points + 2, points + points % 2, 1, 1, points, points});
    const std::vector<float> source = noise(p.rows * p.row_stride);
    const std::vector<float> alone = inverse(transform, p, forward(transform, p, source).get(), source.size());
    for (const float other : {1e20f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      for (const std::int64_t spoilt : {0, 16, 50, 110}) {
        std::vector<float> changed = source;
        const auto begin = static_cast<std::size_t>(spoilt * p.column_stride);
        std::fill_n(changed.begin() + std::ptrdiff_t(begin), p.column_stride, other);
        std::vector<float> found = inverse(transform, p, forward(transform, p, changed).get(), source.size());
        std::copy_n(alone.begin() + std::ptrdiff_t(begin), p.column_stride, found.begin() + std::ptrdiff_t(begin));
        EXPECT_EQ(found, alone) << points << " points, plane " << spoilt << " of " << other;
      }
  }
}

TEST_P(RealFft, InverseRestoresInput) {
  CpuTransform transform(GetParam());
  for (const int points : {1, 2, 7, 12, 16, 18, 30, 36, 40, 64, 100, 256}) {
    const Planes p = planes(3, 19, points, points);
    const std::vector<float> source = noise(p.rows * p.row_stride);
    const auto spectrum = forward(transform, p, source);
    const std::vector<float> target = inverse(transform, p, spectrum.get(), source.size());
    EXPECT_LT(relative_error(target, source), 4e-7) << points;
  }
}

// Weights of few points are summed by definition, all others by a fast transform.
TEST_P(RealFft, TransformsWeightsOfAnySize) {
  CpuTransform transform(GetParam());
  for (const auto& [height, width, grid_height, grid_width] : {std::array{1, 1, 1, 2},
                                                               {1, 3, 4, 5},
                                                               {3, 3, 3, 3},
                                                               {5, 5, 18, 20},
                                                               {7, 4, 15, 14},
                                                               {11, 11, 36, 36},
                                                               {13, 2, 21, 16},
                                                               {16, 16, 16, 18}}) {
    SCOPED_TRACE(std::to_string(height) + "x" + std::to_string(width));
    const Planes p = planes(2, 21, height, width, {grid_height, grid_width, 1, 1, grid_height, grid_width});
    const std::vector<float> source = noise(p.rows * p.row_stride);
    const auto spectrum = forward(transform, p, source);
    const auto at = [&](int i, int j, int row, int column) { return bin(p, spectrum.get(), i, j, row, column); };
    EXPECT_LT(spectrum_error(p, source, at), 4e-7);
    EXPECT_LT(relative_error(inverse(transform, p, spectrum.get(), source.size()), source), 4e-7);
  }
}

// Tiles of outputs of one group among others: nothing around them is read or written.
TEST_P(RealFft, WritesOnlyItsPlanes) {
  CpuTransform transform(GetParam());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Planes p = planes(2, 18, 9, 21, {8, 16, 2, 3, 5, 9});
  p.column_stride = 9 * 21 + 3, p.row_stride = 20 * p.column_stride, p.offset = 7;
  p.window_h = 5, p.window_w = 9;
  std::vector<float> source(static_cast<std::size_t>(2 * p.row_stride + 7), nan);
  const auto each = [&](const auto& change) {
    for (std::int64_t row = 0; row < p.rows; ++row)
      for (std::int64_t column = 0; column < p.columns; ++column)
        for (std::int64_t i = 0; i < p.height * p.width; ++i)
          change(static_cast<std::size_t>(p.offset + row * p.row_stride + column * p.column_stride + i), column);
  };
  each([&](std::size_t i, std::int64_t) { source[i] = static_cast<float>(i % 97) - 48; });
  const auto spectrum = forward(transform, p, source);
  std::vector<float> target = inverse(transform, p, spectrum.get(), source.size());
  expect_close(target, source, 1e-6f);

  std::vector<float> bias(18);
  for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = static_cast<float>(i);
  target = inverse(transform, p, spectrum.get(), source.size(), {bias.data(), true});
  each([&](std::size_t i, std::int64_t column) { source[i] = std::max(0.0f, source[i] + bias[std::size_t(column)]); });
  expect_close(target, source, 1e-6f);
}

// Masked elements count as zero, and column sums include only unmasked ones: in one tile or several, for planes with
// fast transforms and, the last ones, by definition.
TEST_P(RealFft, MasksAndSums) {
  CpuTransform transform(GetParam());
  Planes tiles = planes(3, 21, 17, 35, {16, 24, 2, 2, 9, 18});
  tiles.window_h = 9, tiles.window_w = 18;
  for (const Planes& p : {planes(2, 19, 20, 36), tiles, planes(3, 5, 3, 4, {15, 14, 1, 1, 15, 14})}) {
    SCOPED_TRACE(to_string(p.grid));
    const std::vector<float> source = noise(p.rows * p.row_stride);
    std::vector<float> mask = source, passed = source;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      mask[i] = i % 5 == 0 ? 0 : i % 5 == 1 ? std::numeric_limits<float>::quiet_NaN() : mask[i] * (i % 2 ? 1.f : -1.f);
      if (!(mask[i] > 0)) passed[i] = 0;
    }
    const auto spectrum = forward(transform, p, source, mask.data()), expected = forward(transform, p, passed);
    const auto* const floats = static_cast<const float*>(spectrum.get());
    const auto* const others = static_cast<const float*>(expected.get());
    const int lanes = kernels_for(GetParam()).lanes;
    const SpectrumLayout layout = layout_of(p.matrix_rows(), p.columns, lanes);
    for (std::int64_t bin = 0; bin < transform.bins(p.grid); ++bin)
      ASSERT_TRUE(std::equal(floats + bin * layout.bin_stride,
                             floats + bin * layout.bin_stride + p.matrix_rows() * layout.blocks * 2 * lanes,
                             others + bin * layout.bin_stride))
          << bin;

    std::vector<float> sums(static_cast<std::size_t>(p.columns), 1.f), exact = sums;
    for (std::size_t i = 0; i < passed.size(); ++i) exact[i / std::size_t(p.column_stride) % exact.size()] += passed[i];
    transform.sum_columns(ctx, p, spectrum.get(), true, sums.data());
    expect_close(sums, exact, 2e-6f);
    transform.sum_columns(ctx, p, spectrum.get(), false, sums.data());
    for (float& sum : sums) sum += 1;
    expect_close(sums, exact, 2e-6f);
  }
}

// Adds overlapping windows, whatever the order of their elements in memory.
TEST_P(RealFft, AddsOverlappingTiles) {
  CpuTransform transform(GetParam());
  Planes p = planes(3, 5, 10, 10, {8, 8, 2, 2, 5, 5});
  p.first_h = p.first_w = -1;
  p.window_h = p.window_w = 8;
  const std::vector<float> source(static_cast<std::size_t>(p.rows * p.row_stride), 1);
  const auto spectrum = forward(transform, p, source);
  const std::vector<float> target = inverse(transform, p, spectrum.get(), source.size());
  for (std::size_t i = 0; i < target.size(); ++i) {
    const auto tiles = [](std::size_t place) { return place >= 4 && place < 7 ? 2 : 1; };  // windows -1..6 and 4..11
    EXPECT_NEAR(target[i], tiles(i / 10 % 10) * tiles(i % 10), 1e-5) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, RealFft, every_instruction_set(), name_of_set);

}  // namespace
}  // namespace twiddle
