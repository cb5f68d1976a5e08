#pragma once
#include <cstddef>
#include <cstdint>

#include "fft/cuda/pair_products/pair_scales.h"
#include "framework/for_each.h"

// The storages half_pairs and halves: a spectrum's floats as sums of two halves each, or rounded to one, [bin][row]
// [column / 32][plane][32 columns]; of one half there are the first two planes alone. Every number lacks two powers of
// two, of its row and of its column, which are the same in all bins: number = (high + low) * 2^(of_rows[row] +
// of_columns[column] - top_exponent). These exponents lie behind the halves, first those of the columns.
namespace twiddle::stored_pairs {

enum Plane { re_high, im_high, re_low, im_low };
constexpr int columns_a_group = 32;

// Of the largest number that a half could be for what its plane holds.
constexpr int top_exponent = 15;
// That of a line of zeros, or of one without finite numbers.
constexpr int no_exponent = -160;

// 2^exponent is above the bound of a plane's numbers. A plane whose numbers would be multiplied by more than 2^126 has
// the exponent that makes it so much, as a larger power and its inverse are not both floats.
TWIDDLE_HD inline int exponent_above(float bound) {
  constexpr int least = top_exponent - 126;
  const int exponent = pairs::exponent_of(bound);
  if (!(bound > 0) || exponent >= 127) return no_exponent;
  return exponent + 1 > least ? exponent + 1 : least;
}
// What numbers that shall lack an exponent are multiplied by, and what gives it back.
TWIDDLE_HD inline float scale_without(int exponent) {
  return pairs::power_of_two(pairs::limited(top_exponent - exponent, 126));
}
TWIDDLE_HD inline float scale_back(int exponent) {
  return pairs::power_of_two(pairs::limited(exponent - top_exponent, 126));
}

struct StoredSpectrum {
  int halves_a_float;
  std::int64_t bins, rows, columns;  // columns: a multiple of columns_a_group

  TWIDDLE_HD std::size_t halves_bytes() const {
    constexpr int floats_a_number = 2, bytes_a_half = 2;
    return static_cast<std::size_t>(bins * rows * columns * halves_a_float * floats_a_number * bytes_a_half);
  }
  // With room for the last step of a product along rows, which may read exponents behind the last one.
  std::size_t bytes() const {
    constexpr std::int64_t step = 32;
    const std::int64_t exponents = (rows + step - 1) / step * step + columns;
    return halves_bytes() + static_cast<std::size_t>(exponents) * sizeof(int);
  }
  TWIDDLE_HD int* of_columns(void* spectrum) const {
    return reinterpret_cast<int*>(static_cast<char*>(spectrum) + halves_bytes());
  }
  TWIDDLE_HD int* of_rows(void* spectrum) const { return of_columns(spectrum) + columns; }
  TWIDDLE_HD const int* of_columns(const void* spectrum) const { return of_columns(const_cast<void*>(spectrum)); }
  TWIDDLE_HD const int* of_rows(const void* spectrum) const { return of_rows(const_cast<void*>(spectrum)); }
};

}  // namespace twiddle::stored_pairs
