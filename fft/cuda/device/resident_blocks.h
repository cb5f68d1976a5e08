#pragma once

namespace twiddle::small_fft {

// How many blocks of this many threads a multiprocessor is to have room for, for __launch_bounds__: `wanted`, which was
// measured on an H200, but no more than the threads that the architecture being compiled for can hold at once (CUDA
// Programming Guide, "Compute Capabilities"): ptxas refuses bounds beyond.
template <int Threads>
constexpr int resident_blocks(int wanted) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  constexpr int held = 1024;
#elif defined(__CUDA_ARCH__) && (__CUDA_ARCH__ % 100 != 0 || __CUDA_ARCH__ >= 1200)  // 8.6, 8.7, 8.9, 12.0 and 12.1
  constexpr int held = 1536;
#else
  constexpr int held = 2048;
#endif
  constexpr int most = held / Threads;
  return wanted < most ? wanted : most;
}

}  // namespace twiddle::small_fft
