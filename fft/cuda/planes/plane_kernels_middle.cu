#include "fft/cuda/planes/plane_launch.h"

namespace twiddle::small_fft {

void add_middle_planes(std::vector<PlaneKernels>& all) {
  all.push_back(plane_kernels<18, 18, BlockShape{32, 3}>());
  all.push_back(plane_kernels<20, 20, BlockShape{32, 3}>());
  all.push_back(plane_kernels<24, 24, BlockShapes{{8, 8}, {32, 2}}>());
  all.push_back(plane_kernels<28, 28, BlockShapes{{8, 6}, {16, 3}}, BlockShapes{{8, 5, true}, {16, 3}}>());
  all.push_back(plane_kernels<30, 30, BlockShapes{{8, 4}, {16, 2}}, BlockShapes{{8, 4, true}, {8, 4}}>());
  all.push_back(plane_kernels<32, 32, BlockShapes{{8, 4}, {16, 2}}, BlockShapes{{8, 4, true}, {32, 1}}>());
}

}  // namespace twiddle::small_fft
