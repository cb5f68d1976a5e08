#include "fft/cuda/natural_kernel_templates.h"

namespace twiddle::small_fft {

void add_oblong_natural_planes(std::vector<BatchKernels>& all) {
  add_planes<8, 16, 4, 16, 8>(all);
  add_planes<16, 8, 4, 16, 8>(all);
  add_planes<8, 32, 2, 8, 6>(all);
  add_planes<32, 8, 2, 8, 6>(all);
  add_planes<16, 32, 2, 8, 6>(all);
  add_planes<32, 16, 2, 8, 6>(all);
  add_planes<32, 64, 1, 4, 3>(all);
  add_planes<64, 32, 1, 4, 3>(all);
}

}  // namespace twiddle::small_fft
