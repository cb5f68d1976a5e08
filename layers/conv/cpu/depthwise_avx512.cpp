#include "layers/conv/cpu/depthwise_loops.h"

namespace twiddle {

DepthwiseKernels avx512_depthwise_kernels() {
  return depthwise_kernels<16>();
}

}  // namespace twiddle
