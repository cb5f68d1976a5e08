#include "fft/cuda/planes/plane_launch.h"

namespace twiddle::small_fft {

void add_small_planes(std::vector<PlaneKernels>& all) {
  all.push_back(plane_kernels<2, 2, BlockShape{128, 8}>());
  all.push_back(plane_kernels<4, 4, BlockShape{64, 8}>());
  all.push_back(plane_kernels<8, 8, BlockShape{32, 8}>());
  all.push_back(plane_kernels<10, 10, BlockShape{32, 8}>());
  all.push_back(plane_kernels<12, 12, BlockShape{32, 6}>());
  all.push_back(plane_kernels<14, 14, BlockShape{32, 5}>());
  all.push_back(plane_kernels<16, 16, BlockShape{32, 4}>());
}

}  // namespace twiddle::small_fft
