#include "apps/bench/cuda/batched_launch.h"

namespace twiddle::small_fft {

std::vector<ColumnKernels> column_kernels() {
  std::vector<ColumnKernels> all;
  for_each_shape<column_shapes>([&]<ColumnShape shape>() {
    using Block = Columns<shape.points, shape.a>;
    all.push_back({shape.points, shape.few, launch_blocks<Block, forwards, ColumnArguments, shape.min_blocks>,
                   launch_blocks<Block, backwards, ColumnArguments, shape.min_blocks>});
  });
  return all;
}

}  // namespace twiddle::small_fft
