#include "fft/cuda/natural_kernel_templates.h"

namespace twiddle::small_fft {

void add_middle_natural_planes(std::vector<BatchKernels>& all) {
  add_planes<18, 18, 2, 16, 6>(all);
  add_planes<20, 20, 2, 16, 6>(all);
  add_planes<24, 24, 2, 8, 8>(all);
  add_planes<28, 28, 2, 8, 5>(all);
  add_planes<30, 30, 2, 8, 5>(all);
}

}  // namespace twiddle::small_fft
