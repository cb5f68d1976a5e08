#include "apps/bench/cuda/batched_launch.h"
#include "apps/bench/cuda/shared_plane_fft.h"

namespace twiddle::small_fft {

void add_shared_planes(std::vector<BatchKernels>& all) {
  for_each_shape<shared_plane_shapes>([&]<SharedPlaneShape shape>() {
    using Block = SharedPlane<shape.points, shape.row_a, shape.column_a, shape.threads>;
    all.push_back(batch_kernels<Block, shape.min_blocks>(shape.points, shape.points, shape.most));
  });
}

}  // namespace twiddle::small_fft
