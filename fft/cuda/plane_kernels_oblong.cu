#include "fft/cuda/plane_kernel_templates.h"

namespace twiddle::small_fft {

// For planes that are not square: neighbours in size, and those four times as long as wide.
void add_oblong_planes(std::vector<PlaneKernels>& all) {
  all.push_back(plane_kernels<8, 16, 32, 4>());
  all.push_back(plane_kernels<16, 8, 32, 4>());
  all.push_back(plane_kernels<8, 32, 16, 3>());
  all.push_back(plane_kernels<32, 8, 16, 3>());
  all.push_back(plane_kernels<16, 32, 16, 3>());
  all.push_back(plane_kernels<32, 16, 16, 3>());
  all.push_back(plane_kernels<32, 64, 4, 3>());
  all.push_back(plane_kernels<64, 32, 4, 3>());
}

}  // namespace twiddle::small_fft
