#pragma once

// All numbers of this folder that were measured and not derived: on one NVIDIA H200 (sm_90, 132 multiprocessors) with
// CUDA 13.0. Results do not depend on any of them.
namespace twiddle::small_fft {

// Threads per line, planes per block, and the number of resident blocks for which a multiprocessor's registers should
// suffice.
struct DepthwiseBlockShape {
  int split, planes, min_blocks;
};
struct DepthwiseShape {
  int size;  // of transforms
  DepthwiseBlockShape convolve, correlate;
};

constexpr DepthwiseShape depthwise_shapes[] = {
    {14, {1, 16, 6}, {1, 16, 4}}, {16, {1, 16, 6}, {1, 16, 4}}, {20, {1, 16, 5}, {1, 16, 3}},
    {24, {1, 8, 6}, {1, 8, 4}},   {28, {1, 8, 4}, {1, 8, 4}},   {36, {1, 4, 4}, {1, 4, 4}},
    {42, {1, 4, 4}, {1, 8, 2}},   {48, {1, 4, 4}, {2, 4, 2}},   {56, {1, 4, 3}, {2, 2, 3}},
    {64, {2, 2, 4}, {2, 2, 3}},   {72, {2, 2, 3}, {2, 1, 4}},   {80, {2, 2, 3}, {2, 1, 4}},
    {84, {2, 1, 4}, {2, 1, 4}},   {96, {2, 1, 4}, {2, 1, 2}},
};

// Waves of blocks that correlate a layer: more parts are more spectra to write and to add.
constexpr int correlating_waves = 2;

// Number of images whose spectra a thread adds consecutively. With 64 images in one part: 0.58 ms (table31_64), in
// eight 0.51, in twelve 0.59, on an H100; replk1: 0.184, 0.145, 0.139.
constexpr int images_a_sum = 8;

}  // namespace twiddle::small_fft
