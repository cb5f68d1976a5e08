#pragma once
#include "fft/cuda/device/register_fft.h"

namespace twiddle::small_fft {

// A number of 4 or 8 bytes from global to shared memory beside the thread's work, a zero where it is not `wanted`, and
// then `from` may be anything: it is there after a wait. GPUs before sm_80, and a CPU, copy it at once.
template <class Number>
TWIDDLE_HD void copy_beside(Number* to, const Number* from, bool wanted) {
  static_assert(sizeof(Number) == 4 || sizeof(Number) == 8);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = wanted ? sizeof(Number) : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from), "n"(sizeof(Number)), "r"(bytes)
               : "memory");
#else
  *to = wanted ? *from : Number{};
#endif
}

// What the thread copied since the last call is one batch.
TWIDDLE_HD inline void end_batch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Until all of the thread's batches but the latest `Batches` are there.
template <int Batches>
TWIDDLE_HD inline void wait_for_all_but() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Batches) : "memory");
#endif
}

// Adds to a number in global memory beside the thread's work: nothing is waited for. A GPU takes sums too small for a
// normal number for zero.
TWIDDLE_HD inline void add_beside(float* to, float value) {
#ifdef __CUDA_ARCH__
  atomicAdd(to, value);
#else
  *to += value;
#endif
}

}  // namespace twiddle::small_fft
