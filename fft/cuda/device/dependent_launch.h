#pragma once
#include "fft/cuda/device/tuned_on_h200.h"
#include "framework/cuda/check.h"
#include "framework/cuda/shared_memory.h"
#include "framework/error.h"

// Programmatic dependent launch (sm_90 and later; CUDA Programming Guide, "Programmatic Dependent Launch and
// Synchronization"): blocks of the next kernel in a stream start while this kernel still runs, and wait for its end
// themselves. On an H200 that takes 0.4 to 0.6 microseconds off a launch.
namespace twiddle::small_fft {

#if __CUDA_ARCH__ >= 900
// Waits until the kernels before this one have finished and their writes are visible. Every thread calls it before its
// first access to global memory, even if it needs nothing from the kernel before. The kernel after this one waits only
// for this one, which must therefore not finish before those before it. (But see planes/plane_launch.h.)
__device__ inline void grid_dependency_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
// Lets the next kernel's blocks start when all blocks of this one have called it or exited. If it is called before
// grid_dependency_wait(), even earlier kernels may still be running then; this is correct only if the next kernel
// accesses no memory before its own wait. Our kernels do not, except for transforms to fp16: the kernel before these
// calls it after its wait. So does a kernel that may be followed by a library's.
__device__ inline void launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
#else
__device__ inline void grid_dependency_wait() {}
__device__ inline void launch_dependents() {}
#endif

// What a launch of one kernel needs to know of its device, which is the current one.
struct DependentLaunch {
  template <class Kernel>
  DependentLaunch(Kernel* kernel, const Device& on)
      : device(on), waits(has_wait(kernel)), small_grid(small_grid_threads * multiprocessors(on)) {}

  Device device;
  bool waits;               // the kernel has a grid_dependency_wait(), so that it may start early
  std::int64_t small_grid;  // grids of at most this number of threads call launch_dependents() at their start

 private:
  // The #if above was decided for the PTX that the kernel's code was made of, which may be older than the GPU. Runtimes
  // and drivers before 12.3 cannot capture such launches in a CUDA graph.
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

// Launches a kernel that calls grid_dependency_wait(), as Kernel(arguments, whether to call launch_dependents() early).
template <auto Kernel, class Arguments>
void launch_dependent(Stream& stream, std::int64_t blocks, int threads, int shared_bytes, const Arguments& arguments) {
  const auto native = static_cast<cudaStream_t>(stream.native());
  constexpr int granted = 48 << 10;  // more dynamic shared memory needs an opt-in
  if (shared_bytes > granted) twiddle::detail::allow_all_shared_memory(Kernel, stream.device());
  require(blocks < std::int64_t(1) << 31, "transforms of ", blocks, " blocks are more than one launch can take");
  if (blocks == 0) return;
  static const DependentLaunch first(Kernel, stream.device());  // checked once, for a process with one GPU
  const DependentLaunch found = first.device == stream.device() ? first : DependentLaunch(Kernel, stream.device());
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = static_cast<unsigned>(blocks), launch.blockDim = static_cast<unsigned>(threads);
  launch.dynamicSmemBytes = static_cast<std::size_t>(shared_bytes);
  launch.stream = native;
  launch.attrs = &overlap, launch.numAttrs = found.waits ? 1 : 0;
  check(cudaLaunchKernelEx(&launch, Kernel, arguments, blocks * threads <= found.small_grid));
}

}  // namespace twiddle::small_fft
