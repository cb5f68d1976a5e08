#pragma once
#include "fft/cuda/pair_products/split_kernel.h"

namespace twiddle::pairs {

// Blocks have equal, consecutive parts of all steps of all tiles. A block writes a tile that only it computes to C, and
// other parts to `results`: one matrix for the first parts of tiles, one for the second parts, and so on.
struct FewRows {
  const SplitPart<rows_of_a>* a;  // [tile][step]
  const float* scales;            // of B's rows
  Factor b;                       // by its columns
  std::int64_t m;
  int k, steps, tiles_m;
  int part, all_steps;
  float *c, *results;
  const float* bias;  // of columns
  bool relu;

  // Returns the first block that computes steps of the tile.
  TWIDDLE_HD int first_block(int tile) const { return static_cast<int>(std::int64_t(tile) * steps / part); }
  TWIDDLE_HD int last_block(int tile) const { return static_cast<int>(((tile + std::int64_t(1)) * steps - 1) / part); }
};
constexpr int columns_of_few_rows = 128;  // of a tile

// Compiled only for sm_90a (sm_90a/).
void multiply_few_rows_by_wgmma(Stream& stream, const FewRows& arguments, bool along_k);

}  // namespace twiddle::pairs
