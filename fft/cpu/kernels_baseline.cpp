#include "fft/cpu/kernels/table.h"

namespace twiddle {

CpuKernels baseline_kernels() {
  return kernels_of<4, 2>();
}

}  // namespace twiddle
