#include "fft/cuda/planes/plane_launch.h"

namespace twiddle::small_fft {

// Twice as high as wide, and of powers of two some four times.
void add_tall_planes(std::vector<PlaneKernels>& all) {
  all.push_back(plane_kernels<16, 8, BlockShape{32, 4}>());
  all.push_back(plane_kernels<32, 8, BlockShape{16, 3}>());
  all.push_back(plane_kernels<20, 10, BlockShapes{{32, 4}, {32, 3}}, BlockShape{32, 4}>());
  all.push_back(plane_kernels<24, 12, BlockShape{32, 2}, BlockShape{32, 3}>());
  all.push_back(plane_kernels<28, 14, BlockShape{16, 3}, BlockShape{32, 2}>());
  all.push_back(plane_kernels<32, 16, BlockShape{16, 3}>());
  all.push_back(plane_kernels<64, 16, BlockShape{4, 3}, BlockShape{16, 1}>());
  all.push_back(plane_kernels<36, 18, BlockShape{8, 4}>());
  all.push_back(plane_kernels<40, 20, BlockShape{16, 2}>());
  all.push_back(plane_kernels<48, 24, BlockShape{8, 2}, BlockShape{8, 3}>());
  all.push_back(plane_kernels<64, 32, BlockShape{4, 3}>());
}

}  // namespace twiddle::small_fft
