#pragma once
#include <cstddef>

#include "fft/frequency_product.h"

// Powers of two along k, by which the columns of A are multiplied and the rows of B divided: they bring a column's
// numbers to about 1, and so a row of B to the size of what it contributes. Where channels of large values have small
// weights, those of small values would else have too few digits in both factors. Of backward_weight, whose k are images
// and tiles, there are none.
namespace twiddle::complex_pairs {

// So with two halves a float. One keeps its 11 bits down to 2^-28 of a line's largest number, and needs no balance.
constexpr bool is_balanced(int halves, bool transpose_a) {
  return halves == 2 && !transpose_a;
}

std::size_t balance_bytes(const FrequencyGemm& gemm);

// [bin][group][k], the bits of floats.
const int* find_balance(Stream& stream, const FrequencyGemm& gemm, const void* a, void* scratch);

}  // namespace twiddle::complex_pairs
