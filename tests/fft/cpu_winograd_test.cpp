// Winograd's transforms on a CPU, for every instruction set that this processor has, against the same in double, tile
// by tile.
#include "fft/winograd/cpu_winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fft/winograd/winograd_form.h"
#include "tests/support/conv_problem.h"
#include "tests/support/every_instruction_set.h"
#include "tests/support/limits.h"
#include "tests/support/noise.h"

namespace twiddle {
namespace {

struct CpuWinogradTest : EveryInstructionSet {};

// A transform with the planes of one operand of a problem, and buffers for them.
template <int outputs>
struct Transformed {
  using Form = WinogradForm<outputs>;
  static constexpr int points = Form::points;

  Transformed(InstructionSet set, const ConvProblem& problem, ConvOperand operand)
      : transform(set),
        planes(planes_of(problem, operand, transform.grids(problem).front())),
        elements(count_of(shape_of(problem, operand))),
        bin_stride(winograd_bin_stride(planes.matrix_rows(), planes.columns)),
        spectrum(ctx.stream->allocate(transform.spectrum_bytes(planes))),
        scratch(ctx.stream->allocate(transform.scratch_bytes(planes))) {}

  void forward(const PlaneSource& source) { transform.forward(ctx, planes, source, spectrum.get(), scratch.get()); }
  void inverse(std::vector<float>& target, const PlaneEpilogue& epilogue = {}) {
    transform.inverse(ctx, planes, spectrum.get(), target.data(), epilogue, scratch.get());
  }
  float& bin(int number, std::int64_t row, std::int64_t tile, std::int64_t column) {
    const std::int64_t matrix_row = row * planes.grid.tiles() + tile;
    return static_cast<float*>(spectrum.get())[number * bin_stride + matrix_row * planes.columns + column];
  }
  void fill_spectrum() {
    const std::vector<float> values =
        noise(static_cast<std::int64_t>(transform.spectrum_bytes(planes) / sizeof(float)));
    std::copy(values.begin(), values.end(), static_cast<float*>(spectrum.get()));
  }
  // run(row, tile, column) for all tiles.
  template <class Run>
  void for_each_tile(const Run& run) {
    for (std::int64_t row = 0; row < planes.rows; ++row)
      for (std::int64_t tile = 0; tile < planes.grid.tiles(); ++tile)
        for (std::int64_t column = 0; column < planes.columns; ++column) run(row, tile, column);
  }
  // Returns the offset of element (i, j) of a tile in the tensor; -1: outside the plane.
  std::int64_t place(std::int64_t row, std::int64_t tile, std::int64_t column, int i, int j) const {
    const std::int64_t y = planes.first_h + tile / planes.grid.tiles_w * outputs + i;
    const std::int64_t x = planes.first_w + tile % planes.grid.tiles_w * outputs + j;
    if (y < 0 || y >= planes.height || x < 0 || x >= planes.width) return -1;
    return planes.offset + row * planes.row_stride + column * planes.column_stride + y * planes.width + x;
  }

  Context ctx;
  CpuWinograd<outputs> transform;
  Planes planes;
  std::int64_t elements;  // of the operand's tensor
  std::int64_t bin_stride;
  std::shared_ptr<void> spectrum, scratch;
};

// The largest difference between the bins and line(elements) in double.
template <int outputs, int size, auto line>
double forward_difference(Transformed<outputs>& t, const std::vector<float>& values, const std::vector<float>& mask) {
  double largest = 0;
  t.for_each_tile([&](std::int64_t row, std::int64_t tile, std::int64_t column) {
    double elements[size][size], bins[outputs + 2][outputs + 2];
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        const auto at = static_cast<std::size_t>(t.place(row, tile, column, i, j));
        elements[i][j] = at < values.size() && (mask.empty() || mask[at] > 0) ? double(values[at]) : 0;
      }
    nest<line>(elements, bins);
    for (int i = 0; i < t.points; ++i)
      for (int j = 0; j < t.points; ++j) {
        const double difference = std::abs(double(t.bin(i * t.points + j, row, tile, column)) - bins[i][j]);
        largest = std::isnan(difference) ? 1 : std::max(largest, difference);
      }
  });
  return largest;
}

// The same for the inverse, into a tensor filled with NaN: sums over tiles, then bias and ReLU.
template <int outputs, int size, auto line>
double inverse_difference(Transformed<outputs>& t, const std::vector<float>& bias) {
  t.fill_spectrum();
  std::vector<float> target(static_cast<std::size_t>(t.elements), not_a_number);
  t.inverse(target, {bias.empty() ? nullptr : bias.data(), !bias.empty()});
  std::vector<double> sums(target.size());
  std::vector<char> written(target.size());
  t.for_each_tile([&](std::int64_t row, std::int64_t tile, std::int64_t column) {
    double bins[outputs + 2][outputs + 2], elements[size][size];
    for (int i = 0; i < t.points; ++i)
      for (int j = 0; j < t.points; ++j) bins[i][j] = double(t.bin(i * t.points + j, row, tile, column));
    nest<line>(bins, elements);
    for (int i = 0; i < size; ++i)
      for (int j = 0; j < size; ++j) {
        const auto at = static_cast<std::size_t>(t.place(row, tile, column, i, j));
        if (at >= sums.size()) continue;
        if (!written[at] && !bias.empty()) sums[at] = double(bias[static_cast<std::size_t>(column)]);
        sums[at] += elements[i][j], written[at] = true;
      }
  });
  double largest = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (!written[i]) {  // of another group
      EXPECT_TRUE(std::isnan(target[i])) << i;
      continue;
    }
    const double difference = std::abs(double(target[i]) - (bias.empty() ? sums[i] : std::max(0.0, sums[i])));
    largest = std::isnan(difference) ? 1 : std::max(largest, difference);
  }
  return largest;
}

// Partial tiles, fewer and more planes than a vector has lanes, groups, pads wider than the plane, and a spectrum
// larger than the caches.
const char* const problem_texts[] = {"1x3x1x2 * 2x3x3x3 pad 3", "2x19x9x14 * 17x19x3x3 pad 1",
                                     "3x6x7x5 * 34x3x3x3 pad 2x0 groups 2", "2x16x8x12 * 32x16x3x3",
                                     "6x32x41x43 * 16x32x3x3 pad 1"};

template <int outputs>
void expect_forward(InstructionSet set) {
  using Form = WinogradForm<outputs>;
  constexpr double allowed = 3e-6;  // of bins of a few units
  for (const char* const text : problem_texts) {
    const ConvProblem problem = conv_problem(text);
    Transformed<outputs> x(set, problem, ConvOperand::x), w(set, problem, ConvOperand::w),
        y(set, problem, ConvOperand::y);
    const std::vector<float> of_x = noise(x.elements), of_w = noise(w.elements), of_y = noise(y.elements);
    std::vector<float> mask = noise(y.elements, 5);
    mask.front() = not_a_number;
    x.forward(of_x.data()), w.forward(of_w.data()), y.forward({of_y.data(), mask.data()});
    EXPECT_LT((forward_difference<outputs, Form::points, Form::template input<double>>(x, of_x, {})), 4 * allowed)
        << text;
    EXPECT_LT((forward_difference<outputs, 3, Form::template filter<double>>(w, of_w, {})), allowed) << text;
    EXPECT_LT((forward_difference<outputs, outputs, Form::template output_transposed<double>>(y, of_y, mask)),
              4 * allowed)
        << text;
  }
}

template <int outputs>
void expect_inverse(InstructionSet set) {
  using Form = WinogradForm<outputs>;
  constexpr double allowed = 2e-5;  // of elements of up to a hundred
  for (const char* const text : problem_texts) {
    const ConvProblem problem = conv_problem(text);
    Transformed<outputs> x(set, problem, ConvOperand::x), w(set, problem, ConvOperand::w),
        y(set, problem, ConvOperand::y);
    const std::vector<float> bias = noise(y.planes.columns);
    EXPECT_LT((inverse_difference<outputs, Form::points, Form::template input_transposed<double>>(x, {})), allowed)
        << text;
    EXPECT_LT((inverse_difference<outputs, 3, Form::template filter_transposed<double>>(w, {})), allowed) << text;
    EXPECT_LT((inverse_difference<outputs, outputs, Form::template output<double>>(y, {})), allowed) << text;
    EXPECT_LT((inverse_difference<outputs, outputs, Form::template output<double>>(y, bias)), allowed) << text;
  }
}

template <int outputs>
void expect_sums(InstructionSet set) {
  for (const char* const text : problem_texts) {
    Transformed<outputs> y(set, conv_problem(text), ConvOperand::y);
    const std::vector<float> values = noise(y.elements);
    y.forward(values.data());
    std::vector<double> expected(static_cast<std::size_t>(y.planes.columns), 1);
    y.for_each_tile([&](std::int64_t row, std::int64_t tile, std::int64_t column) {
      for (int i = 0; i < outputs; ++i)
        for (int j = 0; j < outputs; ++j) {
          const auto at = static_cast<std::size_t>(y.place(row, tile, column, i, j));
          if (at < values.size()) expected[static_cast<std::size_t>(column)] += double(values[at]);
        }
    });
    std::vector<float> sums(expected.size(), not_a_number);
    y.transform.sum_columns(y.ctx, y.planes, y.spectrum.get(), false, sums.data());
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(double(sums[i]), expected[i] - 1, 2e-4) << text;
    std::fill(sums.begin(), sums.end(), 1.0f);
    y.transform.sum_columns(y.ctx, y.planes, y.spectrum.get(), true, sums.data());
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_NEAR(double(sums[i]), expected[i], 2e-4) << text;
  }
}

template <int outputs>
void expect_own_images(InstructionSet set) {
  Transformed<outputs> x(set, conv_problem("3x5x9x9 * 4x5x3x3 pad 1"), ConvOperand::x);
  std::vector<float> values = noise(x.elements), back(values.size(), not_a_number);
  const std::size_t image = values.size() / 3;
  std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(image), image, not_a_number);
  x.forward(values.data());
  x.inverse(back);
  for (std::size_t i = 0; i < back.size(); ++i) EXPECT_EQ(std::isnan(back[i]), i / image == 1) << i;
}

TEST_P(CpuWinogradTest, TransformsEveryTile) {
  expect_forward<2>(GetParam());
  expect_forward<4>(GetParam());
}

TEST_P(CpuWinogradTest, InverseWritesEveryElement) {
  expect_inverse<2>(GetParam());
  expect_inverse<4>(GetParam());
}

TEST_P(CpuWinogradTest, SumsElementsOfColumns) {
  expect_sums<2>(GetParam());
  expect_sums<4>(GetParam());
}

TEST_P(CpuWinogradTest, KeepsNanInItsImage) {
  expect_own_images<2>(GetParam());
  expect_own_images<4>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sets, CpuWinogradTest, every_instruction_set(), name_of_set);

}  // namespace
}  // namespace twiddle
