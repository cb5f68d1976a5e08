#pragma once
#include "fft/pair_product.h"

// Products whose A has few rows, as images of a batch before a linear layer: their time is that of reading B, once.
// By wgmma alone.
namespace twiddle::pairs {

bool has_few_rows(const PairProduct& product);
std::size_t scratch_of_few_rows(const Device& device, const PairProduct& product);  // bytes
void multiply_few_rows(Stream& stream, const PairProduct& product, void* scratch);

}  // namespace twiddle::pairs
