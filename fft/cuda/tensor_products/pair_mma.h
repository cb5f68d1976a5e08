#pragma once
#include "fft/cuda/tensor_products/pair_block.h"
#include "fft/frequency_product.h"

namespace twiddle::half_pairs {

// By mma.sync, which every GPU since sm_80 has.
void multiply_by_mma(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments);

}  // namespace twiddle::half_pairs
