#include "fft/cuda/batched/batched_launch.h"
#include "fft/cuda/batched/row_fft.h"

namespace twiddle::small_fft {

namespace {

// Straight from and to global memory: up to `most` rows to and from [row][bins], and more of them to and from
// [bin][row], where a warp's accesses are coalesced anyway.
template <int N, int Threads>
void add_direct_rows(std::vector<BatchKernels>& all, std::int64_t most, std::int64_t most_by_bin) {
  all.push_back(batch_kernels<DirectRows<N, Threads>, 1>(1, N, most, most_by_bin));
}

template <int N, int Threads, int PerThread, int MinBlocks>
void add_rows(std::vector<BatchKernels>& all) {
  all.push_back(batch_kernels<ThreadRows<N, Threads, PerThread>, MinBlocks>(1, N));
}

// Few rows directly, more through shared memory.
template <int N, int Threads, int MinBlocks, int PerThread = 1>
void add_few_and_many(std::vector<BatchKernels>& all) {
  add_direct_rows<N, 32>(all, few_short_rows(N), few_short_rows(N));
  add_rows<N, Threads, PerThread, MinBlocks>(all);
}

}  // namespace

void add_short_rows(std::vector<BatchKernels>& all) {
  add_direct_rows<2, 256>(all, any_number, any_number);
  add_direct_rows<4, 128>(all, 65536, any_number);
  add_rows<4, 256, 4, 4>(all);
  add_direct_rows<8, 64>(all, 16384, 65536);
  add_rows<8, 256, 2, 4>(all);
  add_few_and_many<10, 256, 4, 2>(all);
  add_few_and_many<12, 256, 4, 2>(all);
  add_few_and_many<14, 256, 5>(all);
  add_few_and_many<16, 256, 5>(all);
  add_few_and_many<18, 256, 5>(all);
  add_few_and_many<20, 256, 4>(all);
  add_few_and_many<24, 256, 4>(all);
  add_few_and_many<28, 128, 8>(all);
  add_few_and_many<30, 128, 8>(all);
  add_few_and_many<32, 128, 8>(all);
  add_few_and_many<36, 128, 6>(all);
  add_few_and_many<40, 128, 6>(all);
  add_few_and_many<48, 128, 5>(all);
}

}  // namespace twiddle::small_fft
