#pragma once
#include "fft/cuda/device/register_fft.h"
#include "fft/frequency_product.h"

namespace twiddle::stored_pairs {

// Rows x columns of C a block.
enum class TileShape : std::uint8_t { high_128x64, wide_64x128 };

// How a product is cut: the tiles of C, and k. Bins below `whole_bins` are summed at once; of the others each `part` of
// k, a multiple of 32, has a result of its own.
struct Cut {
  TileShape tile;
  std::int64_t whole_bins, part;
};

// C = op(A) op(B) of stored factors; what is summed in parts goes to of_parts, [part][bin][row][column]. By wgmma,
// which GPUs of compute capability 9.0 have and no others. Blocks take tiles as they come, where there is room for a
// count of these, `taken`; null: they are dealt out.
void multiply_stored(Stream& stream, const FrequencyGemm& gemm, int halves_a_float, const void* a, const void* b,
                     const Cut& cut, small_fft::Complex* c, small_fft::Complex* of_parts, int* taken);

}  // namespace twiddle::stored_pairs
