#include "fft/cuda/batched/batched_launch.h"
#include "fft/cuda/batched/plane_major_fft.h"
#include "fft/cuda/batched/shared_plane_fft.h"

namespace twiddle::small_fft {

namespace {

template <int N, int RowA, int ColumnA, int Threads, int MinBlocks>
BatchKernels shared_planes(std::int64_t most = any_number) {
  return batch_kernels<SharedPlane<N, RowA, ColumnA, Threads>, MinBlocks>(N, N, most);
}

}  // namespace

void add_shared_planes(std::vector<BatchKernels>& all) {
  all.push_back(shared_planes<32, 4, 8, 96, 8>(256));
  all.push_back(batch_kernels<PlaneMajor<32, 32, 4>, 8>(32, 32));
  all.push_back(shared_planes<64, 8, 8, 288, 4>(512));
  all.push_back(batch_kernels<PlaneMajor<64, 64, 4>, 2>(64, 64));
  all.push_back(shared_planes<128, 8, 16, 544, 2>());
}

}  // namespace twiddle::small_fft
