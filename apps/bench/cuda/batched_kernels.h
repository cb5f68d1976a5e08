#pragma once
#include <vector>

#include "apps/bench/cuda/column_fft.h"
#include "framework/device.h"

namespace twiddle::small_fft {

// The kernels of batched_fft.h for one size: to and from [row or plane][bins of rfft or rfft2], rows also [bin][row].
struct BatchKernels {
  int height = 1, width = 0;     // height 1: rows
  std::int64_t most = 0;         // up to so many rows or planes on an H200 ...
  std::int64_t most_by_bin = 0;  // ... and up to so many rows that are stored [bin][row]
  std::size_t shared_bytes = 0;  // of a block
  void (*forward)(Stream& stream, const BatchForward& batch) = nullptr;
  void (*inverse)(Stream& stream, const BatchInverse& batch) = nullptr;
};
struct ColumnKernels {
  int points = 0;
  std::int64_t few = 0;  // up to so many planes on an H200 two launches are faster than one block a plane
  void (*forward)(Stream& stream, const ColumnArguments& columns) = nullptr;
  void (*inverse)(Stream& stream, const ColumnArguments& columns) = nullptr;
};

// All shapes of tuned_on_h200.h, compiled side by side.
void add_short_rows(std::vector<BatchKernels>& all);
void add_long_rows(std::vector<BatchKernels>& all);
void add_shared_planes(std::vector<BatchKernels>& all);
std::vector<ColumnKernels> column_kernels();
// Entries Group, Group + plane_major_groups ... of plane_major_shapes; each file of instances/
// compiles one group, for compilers to work on several at once.
constexpr int plane_major_groups = 4;
template <int Group>
void add_group_of_plane_major(std::vector<BatchKernels>& all);

}  // namespace twiddle::small_fft
