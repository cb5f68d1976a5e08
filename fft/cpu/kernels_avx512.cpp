#include "fft/cpu/kernels/table.h"
#include "fft/cpu/kernels/vector_avx512.h"

namespace twiddle {

CpuKernels avx512_kernels() {
  return kernels_of<16, 6>();
}

}  // namespace twiddle
