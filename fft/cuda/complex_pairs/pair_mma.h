#pragma once
#include "fft/cuda/complex_pairs/pair_block.h"
#include "fft/frequency_product.h"

namespace twiddle::complex_pairs {

// By mma.sync, which every GPU since sm_80 has, in tiles of 64 x 64; with one half a float or two.
template <int Halves>
void multiply_by_mma(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments);

}  // namespace twiddle::complex_pairs
