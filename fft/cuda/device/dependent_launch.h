#pragma once
#include "framework/cuda/check.h"
#include "framework/error.h"

// Programmatic dependent launch, from sm_90 on: a kernel's blocks are sent out while the kernel before it in the stream
// still runs, and wait for its end themselves. On an H200 that takes 0.4 to 0.6 microseconds off a launch.
namespace twiddle::small_fft {

#if __CUDA_ARCH__ >= 900
// Behind it memory is as all earlier kernels left it. Every thread of every block calls it before it touches any, for
// the kernel after this one takes this one's end for theirs, too.
__device__ inline void await_earlier_kernels() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
// The next kernel's blocks may come as soon as all blocks of this one have called it; else they come when these have
// ended. Called before await_earlier_kernels(), it lets them come while even earlier kernels run: then the next kernel
// must touch nothing before its own wait, which ours do not. Where kernels of libraries may follow, it is called
// behind.
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
  // It is the PTX's architecture that decided on the #if above, not that of the code made of it. Runtimes and
  // drivers before 12.3 cannot write such launches down as a graph.
  template <class Kernel>
  static bool has_wait(Kernel* kernel) {
    cudaFuncAttributes code{};
    check(cudaFuncGetAttributes(&code, kernel));
    int runtime = 0, driver = 0;
    check(cudaRuntimeGetVersion(&runtime));
    check(cudaDriverGetVersion(&driver));
    return code.ptxVersion >= 90 && runtime >= 12030 && driver >= 12030;
  }
};

// Launches a kernel that awaits the earlier ones itself, as Kernel(arguments, whether it lets the next one begin).
template <auto Kernel, class Arguments>
void launch_early(Stream& stream, std::int64_t blocks, int threads, int shared_bytes, const Arguments& arguments) {
  const auto native = static_cast<cudaStream_t>(stream.native());
  constexpr int granted = 48 << 10;  // without asking
  if (shared_bytes > granted)
    check(cudaFuncSetAttribute(Kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  require(blocks < std::int64_t(1) << 31, "transforms of ", blocks, " blocks are more than one launch can take");
  if (blocks == 0) return;
  static const EarlyLaunch first(Kernel, stream.device());  // asked once, for a process with one GPU
  const EarlyLaunch early = first.device == stream.device() ? first : EarlyLaunch(Kernel, stream.device());
  cudaLaunchAttribute begin_early{};
  begin_early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  begin_early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = static_cast<unsigned>(blocks), launch.blockDim = static_cast<unsigned>(threads);
  launch.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  launch.stream = native;
  launch.attrs = &begin_early, launch.numAttrs = early.waits ? 1 : 0;
  check(cudaLaunchKernelEx(&launch, Kernel, arguments, blocks * threads <= early.small_grid));
}

}  // namespace twiddle::small_fft
