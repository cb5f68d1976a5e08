#include "apps/bench/cuda/batched_launch.h"
#include "apps/bench/cuda/row_fft.h"

namespace twiddle::small_fft {

void add_short_rows(std::vector<BatchKernels>& all) {
  for_each_shape<short_row_shapes>([&]<ShortRowShape shape>() {
    constexpr int N = shape.points;
    constexpr DirectRowsShape direct = shape.direct;
    constexpr ThreadRowsShape shared = shape.shared;
    if constexpr (direct.threads > 0)
      all.push_back(batch_kernels<DirectRows<N, direct.threads>, 1>(1, N, direct.most, direct.most_by_bin));
    if constexpr (shared.threads > 0)
      all.push_back(batch_kernels<ThreadRows<N, shared.threads, shared.per_thread>, shared.min_blocks>(1, N));
  });
}

}  // namespace twiddle::small_fft
