#include "apps/bench/cuda/batched_launch.h"
#include "apps/bench/cuda/row_fft_few.h"
#include "apps/bench/cuda/row_fft_many.h"

namespace twiddle::small_fft {

void add_long_rows(std::vector<BatchKernels>& all) {
  for_each_shape<few_row_shapes>([&]<FewRowsShape shape>() {
    constexpr int warp = 32;
    all.push_back(batch_kernels<FewRows<shape.points, shape.a1, shape.a2, warp>, 1>(1, shape.points, shape.most,
                                                                                    shape.most_by_bin));
  });
  for_each_shape<many_row_shapes>([&]<ManyRowsShape shape>() {
    all.push_back(batch_kernels<ManyRows<shape.points, shape.a, shape.threads>, shape.min_blocks>(1, shape.points));
  });
}

}  // namespace twiddle::small_fft
