#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fft/frequency_product.h"
#include "framework/for_each.h"

// Powers of two that bring the factors of a product into the range of fp16, and that the result is freed of again. A
// number of A is multiplied by 2^(left[row] + along[k]), one of B by 2^(right[column] - along[k]), and a number of C by
// 2^-(left[row] + right[column]), which is exact. `along` moves half of the imbalance between a column of A and its row
// of B to either side: where channels of large values have small weights, one power a row alone would leave those of
// small values too few digits.
namespace twiddle::half_pairs {

// A scaled row's largest bound lies below 2^15; fp16 ends at 65,504. The limits keep sums of two exponents, and with
// them every scale, among the normal floats.
constexpr int top_exponent = 14, most_along = 40, most_of_line = 85;
// Of a plane without a finite number above zero: it takes part in no maximum.
constexpr int no_exponent = -127;

// The exponent of a bound that is not negative.
TWIDDLE_HD inline int exponent_of(float bound) {
  const int exponent = (__builtin_bit_cast(int, bound) >> 23) - 127;
  return exponent > 127 ? no_exponent : exponent;  // Inf and NaN spoil their own row alone
}

TWIDDLE_HD inline int limited(int value, int most) {
  return value < -most ? -most : value > most ? most : value;
}
TWIDDLE_HD inline int balance(int exponent_of_a, int exponent_of_b) {
  return limited((exponent_of_b - exponent_of_a) / 2, most_along);
}
TWIDDLE_HD inline int scale_of_line(int exponent) {
  return limited(top_exponent - exponent, most_of_line);
}

// Exponents as kernels use them: where the bits of a float have its exponent, so that the sum of a line's bits and
// those along k is a power of two as a float.
TWIDDLE_HD inline int exponent_bits(int exponent) {
  return exponent * (1 << 23);
}
TWIDDLE_HD inline int line_bits(int exponent) {
  return exponent_bits(127 + exponent);
}

// All in scratch memory, a group after the other.
struct Scales {
  const int* left;   // [m], line_bits
  const int* right;  // [n], line_bits
  const int* along;  // [k], exponent_bits
};
// Kernels read scales of as many lines behind the last one, of which they make nothing.
constexpr int read_behind = 128;
std::size_t scales_bytes(const FrequencyGemm& gemm);
// Reads both factors once to find each plane's bound, the largest number of all its bins.
Scales find_scales(Stream& stream, const FrequencyGemm& gemm, const void* a, const void* b, void* scratch);

}  // namespace twiddle::half_pairs
