#include "fft/cuda/plane_kernel_templates.h"

namespace twiddle::small_fft {

void add_middle_planes(std::vector<PlaneKernels>& all) {
  all.push_back(plane_kernels<18, 18, 32, 3>());
  all.push_back(plane_kernels<20, 20, 32, 3>());
  all.push_back(plane_kernels<24, 24, 32, 2>());
  all.push_back(plane_kernels<28, 28, 16, 3>());
  all.push_back(plane_kernels<30, 30, 16, 3>());
  all.push_back(plane_kernels<32, 32, 16, 3>());
}

}  // namespace twiddle::small_fft
