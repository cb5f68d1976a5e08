#pragma once
#include "fft/cuda/pair_products/split_kernel.h"

namespace twiddle::pairs {

// Blocks have equal parts of all tiles, in row-major order of tiles.
struct ShortSums {
  const SplitPart<rows_of_a>* a;  // [tile][step]
  const SplitPart<rows_of_b>* b;  // the same
  std::int64_t m, n;
  int tiles_n, part, tiles;
  float* c;
  std::int64_t c_stride;
};

// Compiled only for sm_90a (sm_90a/).
void multiply_short_sums_by_wgmma(Stream& stream, const ShortSums& arguments, int steps);

}  // namespace twiddle::pairs
