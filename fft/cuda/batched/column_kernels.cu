#include "fft/cuda/batched/batched_launch.h"

namespace twiddle::small_fft {

namespace {

template <int N, int A, int MinBlocks>
ColumnKernels columns(std::int64_t few) {
  using Block = Columns<N, A>;
  return {N, few, launch_blocks<Block, forwards, ColumnArguments, MinBlocks>,
          launch_blocks<Block, backwards, ColumnArguments, MinBlocks>};
}

}  // namespace

std::vector<ColumnKernels> column_kernels() {
  return {columns<128, 16, 7>(16), columns<256, 16, 4>(0)};
}

}  // namespace twiddle::small_fft
