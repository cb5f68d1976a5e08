#pragma once
#include <cstddef>
#include <cstdint>

#include "fft/cuda/pair_products/pair_scales.h"
#include "framework/for_each.h"

// The storages half_pairs and halves: a spectrum's floats as split fp16 (high + low) or as single fp16 values,
// [bin][row] [column / 32][plane][32 columns]; `halves` has only the first two planes. A power of two is removed from
// each row and each column, the same in all bins: number = (high + low) * 2^(of_rows[row] + of_columns[column] -
// top_exponent). The exponents follow the fp16 values, those of the columns first.
namespace twiddle::stored_pairs {

enum Plane { re_high, im_high, re_low, im_low };
constexpr int columns_a_group = 32;

// Exponent of the largest fp16 value that the bound of a plane allows.
constexpr int top_exponent = 15;
// Exponent of a line of zeros or without finite numbers.
constexpr int no_exponent = -160;

// 2^exponent is above the bound of a plane's numbers. A plane whose numbers would be multiplied by more than 2^126 has
// the exponent that makes it so much, as a larger power and its inverse are not both floats.
TWIDDLE_HD inline int exponent_above(float bound) {
  constexpr int least = top_exponent - 126;
  const int exponent = pairs::exponent_of(bound);
  if (!(bound > 0) || exponent >= 127) return no_exponent;
  return exponent + 1 > least ? exponent + 1 : least;
}
// The factor that removes an exponent, and the one that restores it.
TWIDDLE_HD inline float scale_without(int exponent) {
  return pairs::power_of_two(pairs::limited(top_exponent - exponent, 126));
}
TWIDDLE_HD inline float scale_back(int exponent) {
  return pairs::power_of_two(pairs::limited(exponent - top_exponent, 126));
}

struct StoredSpectrum {
  int halves_a_float;
  std::int64_t bins, rows, columns;  // columns: a multiple of columns_a_group

  TWIDDLE_HD std::size_t fp16_bytes() const {
    constexpr int floats_a_number = 2, bytes_a_half = 2;
    return static_cast<std::size_t>(bins * rows * columns * halves_a_float * floats_a_number * bytes_a_half);
  }
  // Includes padding for the last step of a product along rows, which may read past the last exponent.
  std::size_t bytes() const {
    constexpr std::int64_t step = 32;
    const std::int64_t exponents = (rows + step - 1) / step * step + columns;
    return fp16_bytes() + static_cast<std::size_t>(exponents) * sizeof(int);
  }
  TWIDDLE_HD int* of_columns(void* spectrum) const {
    return reinterpret_cast<int*>(static_cast<char*>(spectrum) + fp16_bytes());
  }
  TWIDDLE_HD int* of_rows(void* spectrum) const { return of_columns(spectrum) + columns; }
  TWIDDLE_HD const int* of_columns(const void* spectrum) const { return of_columns(const_cast<void*>(spectrum)); }
  TWIDDLE_HD const int* of_rows(const void* spectrum) const { return of_rows(const_cast<void*>(spectrum)); }
};

}  // namespace twiddle::stored_pairs
