#pragma once
#include "fft/cuda/pair_products/split_kernel.h"

namespace twiddle::pairs {

// Blocks have equal parts of all tiles, one row of tiles behind the other.
struct ShortSums {
  const SplitPart<rows_of_a>* a;  // [tile][step]
  const SplitPart<rows_of_b>* b;  // likewise
  std::int64_t m, n;
  int tiles_n, part, tiles;
  float* c;
  std::int64_t c_stride;
};

// Compiled for sm_90a alone (sm_90a/).
void multiply_short_sums_by_wgmma(Stream& stream, const ShortSums& arguments, int steps);

}  // namespace twiddle::pairs
