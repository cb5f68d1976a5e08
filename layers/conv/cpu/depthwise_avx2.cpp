#include "layers/conv/cpu/depthwise_loops.h"

namespace twiddle {

DepthwiseKernels avx2_depthwise_kernels() {
  return depthwise_kernels<8>();
}

}  // namespace twiddle
