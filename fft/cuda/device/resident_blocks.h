#pragma once

namespace twiddle::small_fft {

// Returns the second argument of __launch_bounds__, which limits the registers per thread: `wanted` resident blocks per
// multiprocessor, which was measured on an H200, but at most what the threads of the target architecture allow (CUDA
// Programming Guide, "Compute Capabilities"), as ptxas rejects more.
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
