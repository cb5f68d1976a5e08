#pragma once

// Four warps hand registers back that others of their block take (setmaxnreg, sm_90a alone): those that copy need few,
// those that multiply many. A multiple of 8; what all warps have together must be what the block was started with.
namespace twiddle::small_fft {

template <int Each>
__device__ void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Each));
}
template <int Each>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Each));
}

}  // namespace twiddle::small_fft
