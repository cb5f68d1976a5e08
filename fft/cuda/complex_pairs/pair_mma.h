#pragma once
#include "fft/cuda/complex_pairs/pair_block.h"
#include "fft/frequency_product.h"

namespace twiddle::complex_pairs {

// By mma.sync (compute capability 8.0 or higher), in tiles of 64 x 64; with one or two fp16 values per float.
template <int Fp16PerFloat>
void multiply_by_mma(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments);

}  // namespace twiddle::complex_pairs
