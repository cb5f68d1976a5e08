#pragma once
#include <cstdint>

// Numbers that all kernels share and that were measured and not derived: on one NVIDIA H200 (sm_90) with CUDA 13.0.
// Results do not depend on them, and every GPU runs with all of them; on another one some may not be the fastest.
namespace twiddle::small_fft {

// Numbers of rows, planes or blocks that were measured are scaled from this to the current GPU's multiprocessors.
constexpr int multiprocessors_of_an_h200 = 132;

// The most threads per multiprocessor of a grid whose next kernel may start when this one starts: the next kernel's
// blocks occupy multiprocessors that the blocks of larger grids still need.
constexpr std::int64_t small_grid_threads = 96;

}  // namespace twiddle::small_fft
