#include "fft/cuda/batch_kernel_templates.h"
#include "fft/cuda/split_row_fft.h"

namespace twiddle::small_fft {

namespace {

template <int N, int A, int Threads, int BlocksAtOnce>
void add_rows(std::vector<BatchKernels>& all) {
  all.push_back(few_kernels<DirectSplitRowsForward<N, A, 32>, DirectSplitRowsInverse<N, A, 32>>(1, N));
  all.push_back(batch_kernels<SplitRowsForward<N, A, Threads>, SplitRowsInverse<N, A, Threads>, BlocksAtOnce>(1, N));
}

}  // namespace

void add_long_rows(std::vector<BatchKernels>& all) {
  all.push_back(few_kernels<DirectSplitRowsForward<64, 8, 32>, DirectSplitRowsInverse<64, 8, 32>>(1, 64));
  all.push_back(batch_kernels<ThreadRowsForward<64, 64, 1>, ThreadRowsInverse<64, 64, 1>, 8>(1, 64));
  add_rows<128, 8, 128, 6>(all);
  add_rows<256, 16, 256, 2>(all);
}

}  // namespace twiddle::small_fft
