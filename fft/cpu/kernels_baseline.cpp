#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/product.h"

namespace twiddle {

CpuKernels baseline_kernels() {
  return {4,
          pair_scratch<4>,
          forward_pair<4, false>,
          forward_pair<4, true>,
          inverse_pair<4>,
          product_scratch<4>,
          multiply<4, 2>};
}

}  // namespace twiddle
