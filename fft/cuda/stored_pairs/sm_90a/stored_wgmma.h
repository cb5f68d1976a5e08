#pragma once
#include "fft/cuda/device/register_fft.h"
#include "fft/frequency_product.h"

namespace twiddle::stored_pairs {

// Rows x columns of C per block.
enum class TileShape : std::uint8_t { high_128x64, wide_64x128 };

// The tiling of a product: tiles of C, and parts of k. Bins below `whole_bins` are summed at once; in the other bins
// each `part` of k, a multiple of 32, has a separate result.
struct Tiling {
  TileShape tile;
  std::int64_t whole_bins, part;
};

// C = op(A) op(B) of stored factors, by wgmma (only compute capability 9.0). Results of parts are written to of_parts,
// [part][bin][row][column]. `taken`: a counter for the dynamic schedule of tiles; null: static schedule.
void multiply_stored(Stream& stream, const FrequencyGemm& gemm, int halves_a_float, const void* a, const void* b,
                     const Tiling& tiling, small_fft::Complex* c, small_fft::Complex* of_parts, int* taken);

}  // namespace twiddle::stored_pairs
