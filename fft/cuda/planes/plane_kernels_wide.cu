#include "fft/cuda/planes/plane_launch.h"

namespace twiddle::small_fft {

// Twice as wide as high, and of powers of two some four times.
void add_wide_planes(std::vector<PlaneKernels>& all) {
  all.push_back(plane_kernels<8, 16, BlockShape{32, 4}>());
  all.push_back(plane_kernels<8, 32, BlockShape{16, 3}>());
  all.push_back(plane_kernels<10, 20, BlockShape{32, 3}, BlockShape{32, 4}>());
  all.push_back(plane_kernels<12, 24, BlockShape{32, 2}>());
  all.push_back(plane_kernels<14, 28, BlockShape{16, 3}, BlockShape{32, 2}>());
  all.push_back(plane_kernels<16, 32, BlockShape{16, 3}>());
  all.push_back(plane_kernels<16, 64, BlockShape{8, 2}, BlockShape{4, 3}>());
  all.push_back(plane_kernels<18, 36, BlockShape{8, 4}>());
  all.push_back(plane_kernels<20, 40, BlockShape{16, 2}>());
  all.push_back(plane_kernels<24, 48, BlockShape{8, 2}>());
  all.push_back(plane_kernels<32, 64, BlockShape{4, 3}>());
}

}  // namespace twiddle::small_fft
