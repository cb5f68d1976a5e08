#pragma once
#include <cstdint>

// Numbers that all kernels share and that were measured and not derived: on one NVIDIA H200 (sm_90) with CUDA 13.0.
// Results do not depend on them, and every GPU runs with all of them; on another one some may not be the fastest.
namespace twiddle::small_fft {

// What a number of rows, planes or blocks that was measured there is relative to: another GPU asks for its own.
constexpr int multiprocessors_of_an_h200 = 132;

// Up to how many threads of a grid, for each multiprocessor, the next kernel may start at this one's begin: its blocks
// take up places on the multiprocessors, which this kernel's own blocks still need in larger grids.
constexpr std::int64_t small_grid_threads = 96;

}  // namespace twiddle::small_fft
