#include "fft/cuda/natural_kernel_templates.h"

namespace twiddle::small_fft {

void add_large_natural_planes(std::vector<BatchKernels>& all) {
  all.push_back(planes<36, 36, 8, 3>());
  all.push_back(planes<40, 40, 8, 3>());
  all.push_back(planes<48, 48, 4, 5>());
  all.push_back(planes<64, 64, 4, 3>());
}

}  // namespace twiddle::small_fft
