#include "fft/cuda/natural_kernel_templates.h"

namespace twiddle::small_fft {

void add_middle_natural_planes(std::vector<BatchKernels>& all) {
  all.push_back(planes<18, 18, 16, 6>());
  all.push_back(planes<20, 20, 16, 6>());
  all.push_back(planes<24, 24, 8, 8>());
  all.push_back(planes<28, 28, 8, 5>());
  all.push_back(planes<30, 30, 8, 5>());
  all.push_back(planes<32, 32, 8, 5>());
}

}  // namespace twiddle::small_fft
