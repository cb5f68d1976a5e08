#include "fft/cuda/batch_kernel_templates.h"
#include "fft/cuda/split_row_fft.h"

namespace twiddle::small_fft {

namespace {

// `most`: from there on the other is faster on an H200.
template <int N, int A>
BatchKernels few_rows(std::int64_t most) {
  return batch_kernels<DirectSplitRowsForward<N, A, 32>, DirectSplitRowsInverse<N, A, 32>, 1>(1, N, most);
}

template <int N, int A, int Threads, int BlocksAtOnce>
void add_rows(std::vector<BatchKernels>& all, std::int64_t few) {
  all.push_back(few_rows<N, A>(few));
  all.push_back(batch_kernels<SplitRowsForward<N, A, Threads>, SplitRowsInverse<N, A, Threads>, BlocksAtOnce>(1, N));
}

}  // namespace

void add_long_rows(std::vector<BatchKernels>& all) {
  all.push_back(few_rows<64, 8>(8192));
  all.push_back(batch_kernels<ThreadRowsForward<64, 64, 1>, ThreadRowsInverse<64, 64, 1>, 8>(1, 64));
  add_rows<128, 8, 128, 6>(all, 2048);
  add_rows<256, 16, 256, 2>(all, 4096);
}

}  // namespace twiddle::small_fft
