#include "fft/cuda/batch_kernel_templates.h"
#include "fft/cuda/split_row_fft.h"

namespace twiddle::small_fft {

namespace {

template <int N, int A, int Threads, int BlocksAtOnce>
BatchKernels rows() {
  return batch_kernels<SplitRowsForward<N, A, Threads>, SplitRowsInverse<N, A, Threads>, BlocksAtOnce>(1, N);
}

}  // namespace

void add_long_rows(std::vector<BatchKernels>& all) {
  all.push_back(rows<64, 8, 128, 10>());
  all.push_back(rows<128, 8, 128, 6>());
  all.push_back(rows<256, 16, 256, 3>());
}

}  // namespace twiddle::small_fft
