#pragma once
#include "fft/cuda/device/register_fft.h"
#include "fft/frequency_product.h"

namespace twiddle::stored_pairs {

// Rows x columns of C a block.
enum class TileShape : std::uint8_t { high_128x64, wide_64x128 };

// C = op(A) op(B) of stored factors; of each `part` of k, a multiple of 32, in a spectrum of its own. By wgmma, which
// GPUs of compute capability 9.0 have and no others. Blocks take tiles as they come, where there is room for a count of
// these, `taken`; null: they are dealt out.
void multiply_stored(Stream& stream, const FrequencyGemm& gemm, int halves_a_float, const void* a, const void* b,
                     TileShape tile, std::int64_t part, small_fft::Complex* c, int* taken);

}  // namespace twiddle::stored_pairs
