#include "fft/cuda/planes/plane_launch.h"

namespace twiddle::small_fft {

void add_large_planes(std::vector<PlaneKernels>& all) {
  all.push_back(plane_kernels<36, 36, BlockShapes{{8, 4}, {16, 2}}, BlockShapes{{8, 4, true}, {8, 4}}>());
  all.push_back(plane_kernels<40, 40, BlockShape{8, 3}, BlockShape{8, 2, true}>());
  all.push_back(plane_kernels<48, 48, BlockShape{8, 2}>());
  all.push_back(plane_kernels<64, 64, BlockShape{8, 1}, BlockShape{8, 1, true}>());
}

}  // namespace twiddle::small_fft
