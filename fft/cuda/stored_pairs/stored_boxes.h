#pragma once
#include <array>
#include <cstdint>

#include "fft/cuda/stored_pairs/stored_spectrum.h"

namespace twiddle::stored_pairs {

// How the copy engine sees a spectrum: four dimensions, the first of which is contiguous, and the part of a step, a
// box. It writes the numbers of a box in this order to shared memory, and swizzles them.
struct BoxMap {
  std::array<std::uint64_t, 4> sizes, box;  // numbers
  std::array<std::uint64_t, 3> strides;     // bytes, of all dimensions but the first

  // `depth` k and `lines` lines are a step. Two planes of a group of columns are one row of a box, or one is.
  BoxMap(const StoredSpectrum& spectrum, bool along_k, int lines, int depth) {
    const auto number = [](std::int64_t count) { return static_cast<std::uint64_t>(count); };
    const int planes = 2 * spectrum.halves_a_float, planes_a_row = along_k ? 2 : 1;
    const int row_values = planes_a_row * columns_a_group, rows_a_group = planes / planes_a_row;
    const std::int64_t row_bytes = spectrum.columns * planes * 2;
    sizes = {number(row_values), number(spectrum.rows), number(spectrum.columns / columns_a_group * rows_a_group),
             number(spectrum.bins)};
    strides = {number(row_bytes), number(row_values * 2), number(row_bytes * spectrum.rows)};
    box = {number(row_values), number(along_k ? lines : depth),
           number(along_k ? rows_a_group : lines / columns_a_group * rows_a_group), 1};
  }
};

// Where the box of a step and of lines from `line` on begins, in the second and the third dimension.
struct BoxPlace {
  int row, group;
};
TWIDDLE_HD constexpr BoxPlace place_of_box(bool along_k, int halves_a_float, int step, int line, int depth) {
  if (along_k) return {line, step * halves_a_float};
  return {step * depth, line / columns_a_group * 2 * halves_a_float};
}

}  // namespace twiddle::stored_pairs
