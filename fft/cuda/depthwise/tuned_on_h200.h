#pragma once

// All numbers of this folder that were measured and not derived: on one NVIDIA H200 (sm_90, 132 multiprocessors) with
// CUDA 13.0. Results do not depend on any of them.
namespace twiddle::small_fft {

// A size of transforms, by how many threads a line is shared, how many planes a block takes, and for how many resident
// blocks a multiprocessor's registers should suffice, when planes are convolved and when they are correlated.
struct DepthwiseShape {
  int size, split, planes;
  int blocks_convolving, blocks_correlating;
};

constexpr DepthwiseShape depthwise_shapes[] = {
    {16, 1, 16, 6, 4}, {20, 1, 16, 5, 3}, {28, 1, 8, 6, 4}, {36, 1, 8, 3, 2}, {42, 1, 8, 2, 1}, {48, 1, 4, 4, 2},
    {56, 1, 4, 3, 1},  {64, 2, 2, 6, 4},  {72, 2, 2, 5, 3}, {80, 2, 2, 4, 2}, {84, 2, 2, 4, 2}, {96, 2, 1, 6, 4},
};

}  // namespace twiddle::small_fft
