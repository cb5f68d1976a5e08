#pragma once
#include "fft/cuda/register_fft.h"

namespace twiddle::small_fft {

// A number from global to shared memory beside the thread's work, a zero where it is not `wanted`: it is there after a
// wait. GPUs before sm_80, and a CPU, copy it at once.
TWIDDLE_HD inline void copy_beside(Complex* to, const Complex* from, bool wanted) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = wanted ? 8 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(shared), "l"(from), "r"(bytes) : "memory");
#else
  *to = wanted ? *from : Complex{0, 0};
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

}  // namespace twiddle::small_fft
