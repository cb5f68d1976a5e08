#include "fft/cuda/batch_kernel_templates.h"
#include "fft/cuda/row_fft.h"

namespace twiddle::small_fft {

namespace {

template <int N, int Threads, int PerThread, int BlocksAtOnce>
BatchKernels rows() {
  return batch_kernels<ThreadRowsForward<N, Threads, PerThread>, ThreadRowsInverse<N, Threads, PerThread>,
                       BlocksAtOnce>(1, N);
}

}  // namespace

void add_short_rows(std::vector<BatchKernels>& all) {
  all.push_back(rows<2, 256, 8, 4>());
  all.push_back(rows<4, 256, 4, 4>());
  all.push_back(rows<8, 256, 2, 4>());
  all.push_back(rows<10, 256, 2, 4>());
  all.push_back(rows<12, 256, 2, 4>());
  all.push_back(rows<14, 256, 1, 5>());
  all.push_back(rows<16, 256, 1, 5>());
  all.push_back(rows<18, 256, 1, 5>());
  all.push_back(rows<20, 256, 1, 4>());
  all.push_back(rows<24, 256, 1, 4>());
  all.push_back(rows<28, 128, 1, 8>());
  all.push_back(rows<30, 128, 1, 8>());
  all.push_back(rows<32, 128, 1, 8>());
  all.push_back(rows<36, 128, 1, 6>());
  all.push_back(rows<40, 128, 1, 6>());
  all.push_back(rows<48, 128, 1, 5>());
}

}  // namespace twiddle::small_fft
