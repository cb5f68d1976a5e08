#pragma once
#include <vector>

#include "apps/bench/cuda/column_fft.h"
#include "framework/device.h"

namespace twiddle::small_fft {

// The kernels of batched_fft.h for one size, for [row or plane][bins of rfft or rfft2], and for [bin][row] of rows.
struct BatchKernels {
  int height = 1, width = 0;     // height 1: rows
  std::int64_t most = 0;         // the maximum number of rows or planes on an H200
  std::int64_t most_by_bin = 0;  // the same for rows stored as [bin][row]
  std::size_t shared_bytes = 0;  // per block
  void (*forward)(Stream& stream, const BatchForward& batch) = nullptr;
  void (*inverse)(Stream& stream, const BatchInverse& batch) = nullptr;
};
struct ColumnKernels {
  int points = 0;
  std::int64_t few = 0;  // up to this number of planes, two launches are faster on an H200 than one block per plane
  void (*forward)(Stream& stream, const ColumnArguments& columns) = nullptr;
  void (*inverse)(Stream& stream, const ColumnArguments& columns) = nullptr;
};

// All shapes of tuned_on_h200.h; separate files compile in parallel.
void add_short_rows(std::vector<BatchKernels>& all);
void add_long_rows(std::vector<BatchKernels>& all);
void add_shared_planes(std::vector<BatchKernels>& all);
std::vector<ColumnKernels> column_kernels();
// Adds entries Group, Group + plane_major_groups ... of plane_major_shapes. Each file of instances/ compiles one group,
// so that groups compile in parallel.
constexpr int plane_major_groups = 4;
template <int Group>
void add_group_of_plane_major(std::vector<BatchKernels>& all);

}  // namespace twiddle::small_fft
