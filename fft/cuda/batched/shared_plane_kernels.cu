#include "fft/cuda/batched/batched_launch.h"
#include "fft/cuda/batched/plane_major_fft.h"
#include "fft/cuda/batched/shared_plane_fft.h"

namespace twiddle::small_fft {

namespace {

template <int N, int RowA, int ColumnA, int Threads, int BlocksAtOnce>
BatchKernels block_planes(std::int64_t most = any_number) {
  return batch_kernels<BlockPlaneForward<N, RowA, ColumnA, Threads>, BlockPlaneInverse<N, RowA, ColumnA, Threads>,
                       BlocksAtOnce>(N, N, most);
}

}  // namespace

void add_block_planes(std::vector<BatchKernels>& all) {
  all.push_back(block_planes<32, 4, 8, 96, 8>(256));
  all.push_back(batch_kernels<NaturalForward<32, 32, 4>, NaturalInverse<32, 32, 4>, 8>(32, 32));
  all.push_back(block_planes<64, 8, 8, 288, 4>(512));
  all.push_back(batch_kernels<NaturalForward<64, 64, 4>, NaturalInverse<64, 64, 4>, 2>(64, 64));
  all.push_back(block_planes<128, 8, 16, 544, 2>());
}

}  // namespace twiddle::small_fft
