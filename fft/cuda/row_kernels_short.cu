#include "fft/cuda/batch_kernel_templates.h"
#include "fft/cuda/row_fft.h"

namespace twiddle::small_fft {

namespace {

template <int N, int Threads, int PerThread, int BlocksAtOnce>
void add_rows(std::vector<BatchKernels>& all) {
  constexpr int most = N == 2 ? 65536 : N <= 16 ? 16384 : N <= 20 ? 8192 : 1024;
  all.push_back(batch_kernels<DirectRowsForward<N, 32>, DirectRowsInverse<N, 32>, 1>(1, N, most));
  all.push_back(
      batch_kernels<ThreadRowsForward<N, Threads, PerThread>, ThreadRowsInverse<N, Threads, PerThread>, BlocksAtOnce>(
          1, N));
}

}  // namespace

void add_short_rows(std::vector<BatchKernels>& all) {
  add_rows<2, 256, 8, 4>(all);
  add_rows<4, 256, 4, 4>(all);
  add_rows<8, 256, 2, 4>(all);
  add_rows<10, 256, 2, 4>(all);
  add_rows<12, 256, 2, 4>(all);
  add_rows<14, 256, 1, 5>(all);
  add_rows<16, 256, 1, 5>(all);
  add_rows<18, 256, 1, 5>(all);
  add_rows<20, 256, 1, 4>(all);
  add_rows<24, 256, 1, 4>(all);
  add_rows<28, 128, 1, 8>(all);
  add_rows<30, 128, 1, 8>(all);
  add_rows<32, 128, 1, 8>(all);
  add_rows<36, 128, 1, 6>(all);
  add_rows<40, 128, 1, 6>(all);
  add_rows<48, 128, 1, 5>(all);
}

}  // namespace twiddle::small_fft
