#pragma once
#include "fft/cuda/complex_pairs/pair_block.h"
#include "fft/frequency_product.h"

namespace twiddle::complex_pairs {

// By wgmma, which GPUs of compute capability 9.0 have and no others: in tiles of 128 x 64 or 64 x 128, or, with one
// half a float, of 128 x 128.
template <class Tile, int Fp16PerFloat>
void multiply_by_wgmma(Stream& stream, const FrequencyGemm& gemm, PairArguments arguments);

}  // namespace twiddle::complex_pairs
