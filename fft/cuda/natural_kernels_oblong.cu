#include "fft/cuda/natural_kernel_templates.h"

namespace twiddle::small_fft {

void add_oblong_natural_planes(std::vector<BatchKernels>& all) {
  add_planes<8, 16, 16, 8>(all);
  add_planes<16, 8, 16, 8>(all);
  add_planes<8, 32, 8, 6>(all);
  add_planes<32, 8, 8, 6>(all);
  add_planes<16, 32, 8, 6>(all);
  add_planes<32, 16, 8, 6>(all);
  add_planes<32, 64, 4, 3>(all);
  add_planes<64, 32, 4, 3>(all);
}

}  // namespace twiddle::small_fft
