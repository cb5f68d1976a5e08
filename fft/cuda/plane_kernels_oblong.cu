#include "fft/cuda/plane_kernel_templates.h"

namespace twiddle::small_fft {

// For planes that are not square: neighbours in size, and those four times as long as wide.
void add_oblong_planes(std::vector<PlaneKernels>& all) {
  all.push_back(plane_kernels<8, 16, BlockShape{32, 4}>());
  all.push_back(plane_kernels<16, 8, BlockShape{32, 4}>());
  all.push_back(plane_kernels<8, 32, BlockShape{16, 3}>());
  all.push_back(plane_kernels<32, 8, BlockShape{16, 3}>());
  all.push_back(plane_kernels<16, 32, BlockShape{16, 3}>());
  all.push_back(plane_kernels<32, 16, BlockShape{16, 3}>());
  all.push_back(plane_kernels<32, 64, BlockShape{4, 3}>());
  all.push_back(plane_kernels<64, 32, BlockShape{4, 3}>());
}

}  // namespace twiddle::small_fft
