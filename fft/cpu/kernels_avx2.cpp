#include "fft/cpu/kernels/table.h"
#include "fft/cpu/kernels/vector_avx2.h"

namespace twiddle {

CpuKernels avx2_kernels() {
  return kernels_of<8, 2>();
}

}  // namespace twiddle
