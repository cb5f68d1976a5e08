#include "fft/cuda/depthwise/product_sums.h"

namespace twiddle::small_fft {

void sum_products(Stream& stream, const ProductSums& sums) {
  for_each_index(stream, sums.count(), sums);
}

}  // namespace twiddle::small_fft
