#pragma once
#include <cstdint>

namespace twiddle::small_fft {

// A stretch of shared memory to global memory by the multiprocessor's copy engine, where it has one (from sm_90 on) and
// both ends and the size allow it. All threads call it after what they wrote: it holds the barrier between. False: the
// barrier is all that was done.
__device__ inline bool store_in_bulk(float* target, const float* values, int count) {
#if __CUDA_ARCH__ >= 900
  constexpr int unit = 16;  // bytes
  const auto bytes = static_cast<std::uint32_t>(count * sizeof(float));
  const bool possible = reinterpret_cast<std::uintptr_t>(target) % unit == 0 && bytes % unit == 0;
  if (possible) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the engine sees what threads wrote
  __syncthreads();
  if (possible && threadIdx.x == 0) {
    const auto from = static_cast<std::uint32_t>(__cvta_generic_to_shared(values));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target), "r"(from), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the block's memory is given up then
  }
  return possible;
#else
  __syncthreads();
  return false;
#endif
}

}  // namespace twiddle::small_fft
