#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/product.h"

namespace twiddle {

CpuKernels avx2_kernels() {
  return {8,
          pair_scratch<8>,
          forward_pair<8, false>,
          forward_pair<8, true>,
          inverse_pair<8>,
          product_scratch<8>,
          multiply<8, 2>};
}

}  // namespace twiddle
