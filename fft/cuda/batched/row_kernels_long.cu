#include "fft/cuda/batched/batched_launch.h"
#include "fft/cuda/batched/row_fft_few.h"
#include "fft/cuda/batched/row_fft_many.h"

namespace twiddle::small_fft {

namespace {

template <int N, int A1, int A2>
void add_few_rows(std::vector<BatchKernels>& all) {
  all.push_back(batch_kernels<FewRows<N, A1, A2, 32>, 1>(1, N, few_long_rows, few_long_rows_by_bin(N)));
}
template <int N, int A, int Threads, int MinBlocks>
void add_rows(std::vector<BatchKernels>& all) {
  all.push_back(batch_kernels<ManyRows<N, A, Threads>, MinBlocks>(1, N));
}

}  // namespace

void add_long_rows(std::vector<BatchKernels>& all) {
  add_few_rows<64, 4, 4>(all);
  all.push_back(batch_kernels<ThreadRows<64, 64, 1>, 8>(1, 64));
  add_few_rows<128, 4, 4>(all);
  add_rows<128, 8, 128, 7>(all);
  add_few_rows<256, 8, 4>(all);
  add_rows<256, 16, 256, 3>(all);
}

}  // namespace twiddle::small_fft
