#include "fft/cuda/natural_kernel_templates.h"

namespace twiddle::small_fft {

void add_small_natural_planes(std::vector<BatchKernels>& all) {
  all.push_back(planes<2, 2, 128, 8>());
  all.push_back(planes<4, 4, 64, 8>());
  all.push_back(planes<8, 8, 32, 10>());
  all.push_back(planes<10, 10, 32, 8>());
  all.push_back(planes<12, 12, 16, 10>());
  all.push_back(planes<14, 14, 16, 10>());
  all.push_back(planes<16, 16, 16, 10>());
}

}  // namespace twiddle::small_fft
