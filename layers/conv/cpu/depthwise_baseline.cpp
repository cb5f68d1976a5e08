#include "layers/conv/cpu/depthwise_loops.h"

namespace twiddle {

DepthwiseKernels baseline_depthwise_kernels() {
  return depthwise_kernels<4>();
}

}  // namespace twiddle
