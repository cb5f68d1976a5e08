#pragma once
#include <algorithm>
#include <cstdint>

#include "fft/cpu/kernels/vector.h"
#include "fft/cpu/kernels/with_constant.h"
#include "layers/conv/kernels/cpu/depthwise_kernels.h"

// Compiled once for each instruction set, in an unnamed namespace for the same reason as fft/cpu/kernels/vector.h.
//
// An unaligned vector of a plane usually spans two cache lines. Its load takes twice the time of a multiply-add, so one
// load serves several multiply-adds: for neighbouring rows of results, or of taps.
namespace twiddle {
namespace {

// `Rows` rows of `Vectors` vectors of results, to which a column of taps is added.
template <int lanes, int Rows, int Vectors>
struct ResultBlock {
  Floats<lanes> sums[Rows][Vectors];

  // A row that the results meet, result r by tap first - r; those before `Begin` and from `End` on do not.
  template <int Begin, int End>
  [[gnu::always_inline]] void meet(const float* from, const float* first, std::int64_t step) {
    Floats<lanes> values[Vectors];
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) values[v] = load<lanes>(from + v * lanes);
#pragma GCC unroll 8
    for (int r = Begin; r < End; ++r) {
      const Floats<lanes> weight = Floats<lanes>{} + first[-r * step];
#pragma GCC unroll 8
      for (int v = 0; v < Vectors; ++v) sums[r][v] += weight * values[v];
    }
  }

  // At least as many taps as rows. For the first and last taps, some rows have no operand.
  [[gnu::always_inline]] void add(const float* from, std::int64_t pitch, const float* weights, std::int64_t step,
                                  int taps) {
    if constexpr (Rows > 1) meet<0, 1>(from, weights, step), from += pitch;
    if constexpr (Rows > 2) meet<0, 2>(from, weights + step, step), from += pitch;
    if constexpr (Rows > 3) meet<0, 3>(from, weights + 2 * step, step), from += pitch;
    for (int tap = Rows - 1; tap < taps; ++tap, from += pitch) meet<0, Rows>(from, weights + tap * step, step);
    if constexpr (Rows > 1) meet<1, Rows>(from, weights + taps * step, step), from += pitch;
    if constexpr (Rows > 2) meet<2, Rows>(from, weights + (taps + 1) * step, step), from += pitch;
    if constexpr (Rows > 3) meet<3, Rows>(from, weights + (taps + 2) * step, step);
  }
  // By any number of taps.
  void add_few(const float* from, std::int64_t pitch, const float* weights, std::int64_t step, int taps) {
    for (int r = 0; r < Rows; ++r)
      for (int tap = 0; tap < taps; ++tap)
        for (int v = 0; v < Vectors; ++v)
          sums[r][v] += (Floats<lanes>{} + weights[tap * step]) * load<lanes>(from + (r + tap) * pitch + v * lanes);
  }
};

template <int lanes, int Rows, int Vectors>
void sum_block(const TapSums& s, std::int64_t row, std::int64_t column) {
  ResultBlock<lanes, Rows, Vectors> block = {};
  for (int g = 0; g < s.grid_count; ++g) {
    const TapGrid& grid = s.grids[g];
    for (int j = 0; j < grid.columns; ++j) {
      const float* const weights = s.weights + grid.first_tap + j * grid.column_step;
      const float* const from = s.in + grid.offset + row * s.in_pitch + column + j;
      if (grid.rows >= Rows)
        block.add(from, s.in_pitch, weights, grid.row_step, grid.rows);
      else
        block.add_few(from, s.in_pitch, weights, grid.row_step, grid.rows);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v)
      store<lanes>(s.out + (row + r) * s.out_pitch + column + v * lanes, block.sums[r][v]);
}

template <int lanes, int Rows, int most_vectors>
void sum_rows(const TapSums& s, std::int64_t row) {
  for (std::int64_t column = 0; column < s.columns;) {
    const std::int64_t left = s.columns - column;
    if (most_vectors >= 4 && left > 3 * lanes) {
      sum_block<lanes, Rows, most_vectors>(s, row, column);
      column += most_vectors * lanes;
    } else if (left > lanes) {
      sum_block<lanes, Rows, 2>(s, row, column);
      column += 2 * lanes;
    } else {
      sum_block<lanes, Rows, 1>(s, row, column);
      column += lanes;
    }
  }
}

// most_vectors: as many as the registers hold four rows of.
template <int lanes, int most_vectors>
void sum_taps_by(const TapSums& s) {
  int most_rows = 1;
  for (int g = 0; g < s.grid_count; ++g) most_rows = std::max(most_rows, std::min(s.grids[g].rows, 4));
  for (std::int64_t row = 0; row < s.rows; row += most_rows) {
    const std::int64_t left = std::min<std::int64_t>(s.rows - row, most_rows);
    with_constant<4>(static_cast<int>(left), [&]<int rows>() { sum_rows<lanes, rows, most_vectors>(s, row); });
  }
}

// Rows x Columns taps of a grid, from (row, column) of it.
template <int lanes, int Rows, int Columns>
void multiply_block(const TapProducts& p, const TapGrid& grid, int row, int column) {
  constexpr std::int64_t longest_sum = 1024;  // of floats in a row, in each lane
  const std::int64_t met = p.rows + Rows - 1, run = std::max<std::int64_t>(longest_sum / met, 1) * lanes;
  const float* const in = p.in + grid.offset + row * p.in_pitch + column;
  for (std::int64_t begin = 0; begin < p.columns; begin += run) {
    Floats<lanes> sums[Rows][Columns] = {};
    for (std::int64_t c = begin; c < std::min<std::int64_t>(begin + run, p.columns); c += lanes)
      for (std::int64_t r = 0; r < met; ++r) {
        Floats<lanes> values[Columns];
#pragma GCC unroll 8
        for (int j = 0; j < Columns; ++j) values[j] = load<lanes>(in + r * p.in_pitch + c + j);
#pragma GCC unroll 8
        for (int i = 0; i < Rows; ++i) {
          const Floats<lanes> gradient = load<lanes>(p.gradient + (r - i) * p.gradient_pitch + c);
#pragma GCC unroll 8
          for (int j = 0; j < Columns; ++j) sums[i][j] += gradient * values[j];
        }
      }
    for (int i = 0; i < Rows; ++i)
      for (int j = 0; j < Columns; ++j) {
        const int tap = grid.first_tap + (row + i) * grid.row_step + (column + j) * grid.column_step;
        double* const to = p.sums + tap * depthwise_vector;
        for (int lane = 0; lane < lanes; ++lane) to[lane] += double(sums[i][j][lane]);
      }
  }
}

template <int lanes, int Rows, int most_columns>
void multiply_row(const TapProducts& p, const TapGrid& grid, int row) {
  const int parts = (grid.columns + most_columns - 1) / most_columns;
  for (int part = 0, column = 0; part < parts; ++part) {
    const int columns = (grid.columns - column + parts - part - 1) / (parts - part);
    with_constant<most_columns>(columns,
                                [&]<int count>() { multiply_block<lanes, Rows, count>(p, grid, row, column); });
    column += columns;
  }
}

// most_columns: as many as the registers hold four rows of.
template <int lanes, int most_columns>
void multiply_taps_by(const TapProducts& p) {
  for (int g = 0; g < p.grid_count; ++g) {
    const TapGrid& grid = p.grids[g];
    const int parts = (grid.rows + rows_of_taps_at_once - 1) / rows_of_taps_at_once;
    for (int part = 0, row = 0; part < parts; ++part) {
      const int rows = (grid.rows - row + parts - part - 1) / (parts - part);
      with_constant<4>(rows, [&]<int count>() { multiply_row<lanes, count, most_columns>(p, grid, row); });
      row += rows;
    }
  }
}

}  // namespace
}  // namespace twiddle
