#pragma once
#include <cstdint>

#include "fft/cpu/kernels.h"

namespace twiddle {

// The inner loops of a depthwise convolution on padded planes, where a kernel's tap is an offset. Plain values, as they
// are compiled for processors other than the current one (see fft/cpu/kernels.h).

// Loops use full vectors: rows begin at a vector's boundary, and this many more floats follow the last row.
constexpr int depthwise_vector = 16, depthwise_slack = 64;

// Taps of a kernel that read neighboring elements of the plane: tap (i, j) of the grid reads the element i rows and j
// columns after `offset`, and is the kernel's tap number first_tap + i * row_step + j * column_step.
struct TapGrid {
  std::int64_t offset;
  int rows, columns;
  int first_tap, row_step, column_step;
};

// out(r, c) = sum over grids and their taps of weight * in(r, c), with the tap's place added.
struct TapSums {
  const TapGrid* grids;
  int grid_count, rows, columns;
  const float *in, *weights;
  std::int64_t in_pitch;
  float* out;
  std::int64_t out_pitch;
};

// sums[tap][...] += sum over (r, c) of gradient(r, c) * in(r, c), with the tap's place added, as a vector whose lanes
// are still to be added up. Zeros surround the gradient: columns to the end of the vector, and this many rows above and
// below.
constexpr int rows_of_taps_at_once = 4;
struct TapProducts {
  const TapGrid* grids;
  int grid_count, rows, columns;
  const float *in, *gradient;
  std::int64_t in_pitch, gradient_pitch;
  double* sums;
};

struct DepthwiseKernels {
  void (*sum_taps)(const TapSums& sums);
  void (*multiply_taps)(const TapProducts& products);
};
DepthwiseKernels depthwise_kernels_for(InstructionSet set);

DepthwiseKernels baseline_depthwise_kernels();
DepthwiseKernels avx2_depthwise_kernels();
DepthwiseKernels avx512_depthwise_kernels();

}  // namespace twiddle
