#pragma once
#include "fft/pair_product.h"

// Products whose A has few rows, such as images of a batch before a linear layer: they take the time of reading B once.
// Only by wgmma.
namespace twiddle::pairs {

bool has_few_rows(const PairProduct& product);
std::size_t scratch_of_few_rows(const Device& device, const PairProduct& product);  // bytes
void multiply_few_rows(Stream& stream, const PairProduct& product, void* scratch);

}  // namespace twiddle::pairs
