#include "fft/cuda/pair_products/pair_kernel.h"

namespace twiddle::pairs {

void multiply_by_wgmma(Stream& stream, const Arguments& arguments, dim3 grid, bool along_k, bool by_fours) {
  launch_pairs<true>(stream, arguments, grid, along_k, by_fours);
}

}  // namespace twiddle::pairs
