#pragma once

// Moves registers between the warpgroups of a block (setmaxnreg, sm_90a only): copying warps need few, multiplying
// warps many. Counts are multiples of 8; their sum must be what the block was launched with.
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
