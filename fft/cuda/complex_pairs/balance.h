#pragma once
#include <cstddef>

#include "fft/frequency_product.h"

// Powers of two along k: columns of A are multiplied by them and rows of B divided. They scale a column's numbers to
// about 1, and so a row of B to the size of its contribution. If channels of large values have small weights, channels
// of small values would otherwise lose digits in both factors. backward_weight needs none: its k are images and tiles.
namespace twiddle::complex_pairs {

// Needed for split fp16. A single fp16 value keeps its 11 bits down to 2^-28 of a line's largest number.
constexpr bool is_balanced(int fp16_per_float, bool transpose_a) {
  return fp16_per_float == 2 && !transpose_a;
}

std::size_t balance_bytes(const FrequencyGemm& gemm);

// [bin][group][k], the bits of floats.
const int* find_balance(Stream& stream, const FrequencyGemm& gemm, const void* a, void* scratch);

}  // namespace twiddle::complex_pairs
