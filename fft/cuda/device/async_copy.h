#pragma once
#include "fft/cuda/device/register_fft.h"

// Asynchronous copies from global to shared memory (cp.async, sm_80 and later), which need no registers and leave the
// thread free to compute. A thread issues copies, commits them as a group, and waits until all but its latest groups
// have arrived; other threads see them after a barrier. On older GPUs and on a CPU the copy is done at once, and commit
// and wait do nothing.
namespace twiddle::small_fft {

// Copies a number of 4, 8 or 16 bytes, or stores a zero unless it is `wanted`: then `from` is not read and may be
// invalid.
template <class Number>
TWIDDLE_HD void async_copy(Number* to, const Number* from, bool wanted) {
  static_assert(sizeof(Number) == 4 || sizeof(Number) == 8 || sizeof(Number) == 16);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = wanted ? sizeof(Number) : 0;  // the rest of the number is filled with zeros
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from), "n"(sizeof(Number)), "r"(bytes)
               : "memory");
#else
  *to = wanted ? *from : Number{};
#endif
}

// The same for 16 bytes that no other thread of the multiprocessor needs: bypasses the L1 cache.
template <class Number>
TWIDDLE_HD void async_copy_once(Number* to, const Number* from, bool wanted) {
  static_assert(sizeof(Number) == 16);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = wanted ? sizeof(Number) : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
#else
  *to = wanted ? *from : Number{};
#endif
}

// The thread's copies since the last commit become one group.
TWIDDLE_HD inline void commit_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Waits until at most the thread's latest `InFlight` groups are still being copied.
template <int InFlight>
TWIDDLE_HD inline void wait_group() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(InFlight) : "memory");
#endif
}

// Accumulates in global memory. The old value is not returned, so that the thread does not wait for it. (The GPU's unit
// for this flushes subnormal sums to zero.)
TWIDDLE_HD inline void atomic_accumulate(float* to, float value) {
#ifdef __CUDA_ARCH__
  atomicAdd(to, value);
#else
  *to += value;
#endif
}

}  // namespace twiddle::small_fft
