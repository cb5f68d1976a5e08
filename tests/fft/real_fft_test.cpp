// The CPU's real transforms of planes, for every instruction set that this processor has, against the definition.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <numbers>
#include <random>
#include <string>

#include "fft/cpu/cpu_backend.h"

namespace twiddle {
namespace {

using Number = std::complex<double>;

struct RealFft : testing::TestWithParam<InstructionSet> {
  void SetUp() override {
    if (GetParam() > best_instruction_set()) GTEST_SKIP() << "this processor has fewer instructions";
  }
  Context ctx;

  // rows x columns planes of height x width in a grid of its own size or larger, the usual strides.
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
  static std::vector<float> noise(std::int64_t count) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = normal(random);
    return values;
  }
  std::shared_ptr<void> forward(CpuTransform& transform, const Planes& planes, const std::vector<float>& source) {
    auto spectrum = ctx.stream->allocate(transform.spectrum_bytes(planes));
    const auto scratch = ctx.stream->allocate(transform.scratch_bytes(planes));
    transform.forward(ctx, planes, source.data(), spectrum.get(), scratch.get());
    return spectrum;
  }
  std::vector<float> inverse(CpuTransform& transform, const Planes& planes, const void* spectrum, std::size_t count,
                             const PlaneEpilogue& epilogue = {}) {
    const auto scratch = ctx.stream->allocate(transform.scratch_bytes(planes));
    std::vector<float> target(count, std::numeric_limits<float>::quiet_NaN());
    transform.inverse(ctx, planes, spectrum, target.data(), epilogue, scratch.get());
    return target;
  }
  // Bin (i, j) of plane (row, column).
  static Number bin(const Planes& planes, const void* spectrum, int i, int j, int row, int column) {
    const int lanes = kernels_for(GetParam()).lanes;
    const SpectrumLayout layout = layout_of(planes.matrix_rows(), planes.columns, lanes);
    const float* at = static_cast<const float*>(spectrum) +
                      (std::int64_t(j) * planes.grid.height + i) * layout.bin_stride +
                      (row * layout.blocks + column / lanes) * 2 * lanes + column % lanes;
    return {at[0], at[lanes]};
  }
};

// The relative error of all bins of the planes' first and last.
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

TEST_P(RealFft, IsWhatTheDefinitionSays) {
  CpuTransform transform(GetParam());
  for (int points = 1; points <= 128; ++points) {
    if (!FftPlan::can(points)) continue;
    SCOPED_TRACE(points);
    for (const Planes& p : {planes(1, 3, points, 6), planes(2, 1, 3, points)}) {
      const std::vector<float> source = noise(p.rows * p.row_stride);
      const auto spectrum = forward(transform, p, source);
      EXPECT_LT(
          spectrum_error(p, source,
                         [&](int i, int j, int row, int column) { return bin(p, spectrum.get(), i, j, row, column); }),
          4e-7);
    }
  }
}

TEST_P(RealFft, ComesBack) {
  CpuTransform transform(GetParam());
  for (const int points : {1, 2, 7, 12, 16, 18, 30, 36, 40, 64, 100, 256}) {
    const Planes p = planes(3, 19, points, points);
    const std::vector<float> source = noise(p.rows * p.row_stride);
    const auto spectrum = forward(transform, p, source);
    const std::vector<float> target = inverse(transform, p, spectrum.get(), source.size());
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < source.size(); ++i)
      difference += std::pow(source[i] - target[i], 2), size += std::pow(source[i], 2);
    EXPECT_LT(std::sqrt(difference / size), 4e-7) << points;
  }
}

INSTANTIATE_TEST_SUITE_P(Sets, RealFft,
                         testing::Values(InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512),
                         [](const auto& set) {
                           return std::string(set.param == InstructionSet::baseline ? "Baseline"
                                              : set.param == InstructionSet::avx2   ? "Avx2"
                                                                                    : "Avx512");
                         });

}  // namespace
}  // namespace twiddle
