#include "layers/conv/kernels/cpu/depthwise_loops.h"

namespace twiddle {

namespace {

// Half a vector is enough for the rows of small planes.
void sum_taps(const TapSums& sums) {
  if (sums.columns <= 8) return sum_taps_by<8, 4>(sums);
  sum_taps_by<16, 4>(sums);
}

void multiply_taps(const TapProducts& products) {
  if (products.columns <= 8) return multiply_taps_by<8, 4>(products);
  multiply_taps_by<16, 4>(products);
}

}  // namespace

DepthwiseKernels avx512_depthwise_kernels() {
  return {.sum_taps = sum_taps, .multiply_taps = multiply_taps};
}

}  // namespace twiddle
