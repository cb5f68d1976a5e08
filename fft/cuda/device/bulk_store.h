#pragma once
#include <cstdint>

namespace twiddle::small_fft {

// Copies a contiguous range of shared memory to global memory by the multiprocessor's copy engine (the TMA,
// cp.async.bulk, sm_90 and later), which takes one instruction of one thread. All threads of the block call it when
// they have written their part of the range; it contains the barrier that must follow these writes. False: the range is
// not aligned to 16 bytes or there is no such engine, and the barrier is all that was done.
__device__ inline bool bulk_store(float* target, const float* values, int count) {
#if __CUDA_ARCH__ >= 900
  constexpr int unit = 16;  // bytes
  const auto bytes = static_cast<std::uint32_t>(count * sizeof(float));
  const bool possible = reinterpret_cast<std::uintptr_t>(target) % unit == 0 && bytes % unit == 0;
  if (possible)
    asm volatile("fence.proxy.async.shared::cta;" ::
                     : "memory");  // the engine reads through another proxy: it must see the writes
  __syncthreads();
  if (possible && threadIdx.x == 0) {
    const auto from = static_cast<std::uint32_t>(__cvta_generic_to_shared(values));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target), "r"(from), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");  // the block must not end before its memory is read
  }
  return possible;
#else
  __syncthreads();
  return false;
#endif
}

}  // namespace twiddle::small_fft
