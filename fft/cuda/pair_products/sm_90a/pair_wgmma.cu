#include "fft/cuda/pair_products/sm_90a/split_product.h"

namespace twiddle::pairs {

void multiply_by_wgmma(Stream& stream, const Arguments& arguments, dim3 grid, bool along_k, bool by_fours) {
  if (arguments.split_b != nullptr) return launch<SharedOfSplit>(stream, split_product_kernel, arguments, grid);
  launch_pairs<true>(stream, arguments, grid, along_k, by_fours);
}

}  // namespace twiddle::pairs
