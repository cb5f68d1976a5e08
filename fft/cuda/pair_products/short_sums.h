#pragma once
#include "fft/pair_product.h"

// Products of short sums, as the gradient of a linear layer's weights, which is summed over images: their time is that
// of writing C. By wgmma alone.
namespace twiddle::pairs {

bool has_short_sums(const PairProduct& product);
std::size_t scratch_of_short_sums(const PairProduct& product);  // bytes
void multiply_short_sums(Stream& stream, const PairProduct& product, void* scratch);

}  // namespace twiddle::pairs
