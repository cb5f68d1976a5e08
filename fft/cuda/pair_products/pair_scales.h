#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "framework/for_each.h"

// A float as a pair of halves (fp16): the nearest half, and the nearest to what is left. The two have 22 bits of it, as
// far as it lies between 2^-3 and 2^15; below, the second is subnormal, and bits are lost one by one. So numbers are
// scaled first, by powers of two, which lose nothing. README.md tells why these.
namespace twiddle::pairs {

constexpr int top_exponent = 14;  // of the largest number of a row

// The floor of log2 of a magnitude; -127 of zero and of subnormal numbers, 128 of what is not finite.
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

// The mean exponent e of a column of A: the column is multiplied by 2^-e, and the row of B that it meets by 2^e. The
// mean and not the largest, for else one large number in one row would leave all other rows of that column too small.
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

// The exponent of the power of two that a row is multiplied by; its negative is one, too, which takes it back.
TWIDDLE_HD inline int scale_of_row(float largest) {
  const int exponent = exponent_of(largest);
  return exponent > 127 ? 0 : limited(top_exponent - exponent, 126);
}

}  // namespace twiddle::pairs
