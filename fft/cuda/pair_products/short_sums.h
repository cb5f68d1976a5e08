#pragma once
#include "fft/pair_product.h"

// Products with short sums, such as the gradient of a linear layer's weights, which is summed over images: they take
// the time of writing C. Only by wgmma.
namespace twiddle::pairs {

bool has_short_sums(const PairProduct& product);
std::size_t scratch_of_short_sums(const PairProduct& product);  // bytes
void multiply_short_sums(Stream& stream, const PairProduct& product, void* scratch);

}  // namespace twiddle::pairs
