#pragma once
#include "framework/cuda/check.h"

// Programmatic dependent launch, from sm_90 on: a kernel's blocks are sent out while the kernel before it in the stream
// still runs, and wait for its end themselves. On an H200 that takes 0.4 to 0.6 microseconds off a launch.
namespace twiddle::small_fft {

#if __CUDA_ARCH__ >= 900
// Behind it memory is as all earlier kernels left it. Every thread of every block calls it before it touches any, for
// the kernel after this one takes this one's end for theirs, too.
__device__ inline void await_earlier_kernels() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
// The next kernel's blocks may come as soon as all blocks of this one have begun; else they come when these have ended.
__device__ inline void let_next_kernel_begin() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
#else
__device__ inline void await_earlier_kernels() {}
__device__ inline void let_next_kernel_begin() {}
#endif

// How a kernel is launched on a device, which is the current one.
struct EarlyLaunch {
  template <class Kernel>
  EarlyLaunch(Kernel* kernel, const Device& on)
      : device(on), waits(has_wait(kernel)), small_grid(std::int64_t(96) * multiprocessors(on)) {}

  Device device;
  bool waits;  // by itself: another kernel must not begin early
  // Threads of a grid that lets the next kernel begin at once: in larger ones its blocks would wait in places that this
  // one's own still need, as measurements on an H200 show.
  std::int64_t small_grid;

 private:
  // It is the PTX's architecture that decided on the #if above, not that of the code made of it. Runtimes before 12.3
  // cannot write such launches down as a graph.
  template <class Kernel>
  static bool has_wait(Kernel* kernel) {
    cudaFuncAttributes code{};
    check(cudaFuncGetAttributes(&code, kernel));
    int runtime = 0;
    check(cudaRuntimeGetVersion(&runtime));
    return code.ptxVersion >= 90 && runtime >= 12030;
  }
};

}  // namespace twiddle::small_fft
