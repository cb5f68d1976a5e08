#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "framework/for_each.h"

// Splits a float into two fp16 values: the nearest one (high), and the nearest to the rest (low). Together they have 22
// bits if the float is between 2^-3 and 2^15. For smaller floats the low one is subnormal and loses bits. Numbers are
// therefore first scaled by powers of two, which is exact. README.md explains the choice of scales.
namespace twiddle::pairs {

constexpr int top_exponent = 14;  // of the largest number of a row

// Returns the floor of log2 of a magnitude; -127 for zero and subnormal numbers, 128 for non-finite ones.
TWIDDLE_HD inline int exponent_of(float magnitude) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &magnitude, sizeof bits);
  return static_cast<int>(bits >> 23) - 127;
}
TWIDDLE_HD inline float power_of_two(int exponent) {  // -126 to 127
  const std::uint32_t bits = static_cast<std::uint32_t>(exponent + 127) << 23;
  float power = 0;
  std::memcpy(&power, &bits, sizeof power);
  return power;
}

TWIDDLE_HD constexpr int limited(int exponent, int most) {
  return exponent < -most ? -most : exponent > most ? most : exponent;
}

// The mean exponent e of a column of A: the column is multiplied by 2^-e, and the corresponding row of B by 2^e. With
// the largest exponent instead of the mean, one large number in one row would make the column too small in all other
// rows.
struct ColumnExponent {
  int sum = 0, count = 0;  // of numbers that are finite and not zero
  TWIDDLE_HD void add(float value) {
    const int exponent = exponent_of(fabsf(value));
    if (exponent < -126 || exponent > 127) return;
    sum += exponent, ++count;
  }
  TWIDDLE_HD void add(const ColumnExponent& other) { sum += other.sum, count += other.count; }
  TWIDDLE_HD int mean() const { return count == 0 ? -126 : limited(sum / count, 126); }
};

// Returns the exponent of the power of two by which a row is multiplied; the power of its negative undoes the scale.
TWIDDLE_HD inline int scale_of_row(float largest) {
  const int exponent = exponent_of(largest);
  return exponent > 127 ? 0 : limited(top_exponent - exponent, 126);
}

}  // namespace twiddle::pairs
