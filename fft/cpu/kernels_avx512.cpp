#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/planes.h"
#include "fft/cpu/kernels/product.h"

namespace twiddle {

CpuKernels avx512_kernels() {
  return {16,
          pair_scratch<16>,
          forward_pair<16, false>,
          forward_pair<16, true>,
          inverse_pair<16>,
          product_scratch<16>,
          multiply<16, 6>};
}

}  // namespace twiddle
