#include "layers/conv/kernels/cpu/depthwise_loops.h"

namespace twiddle {

DepthwiseKernels avx2_depthwise_kernels() {
  return {.sum_taps = sum_taps_by<8, 2>, .multiply_taps = multiply_taps_by<8, 2>};
}

}  // namespace twiddle
