#pragma once
#include <vector>

#include "fft/cuda/batched/column_fft.h"
#include "framework/device.h"

namespace twiddle::small_fft {

// The kernels of batches of one size, to and from [row or plane][bins as they are]; rows also [bin][row].
struct BatchKernels {
  int height = 1, width = 0;     // height 1: rows
  std::int64_t most = 0;         // rows or planes that they are for ...
  std::int64_t most_by_bin = 0;  // ... and rows where they are stored [bin][row]
  void (*forward)(Stream& stream, const BatchForward& batch) = nullptr;
  void (*inverse)(Stream& stream, const BatchInverse& batch) = nullptr;
};
struct ColumnKernels {
  int points = 0;
  std::int64_t few = 0;  // planes that two steps are faster with than one launch
  void (*forward)(Stream& stream, const ColumnArguments& columns) = nullptr;
  void (*inverse)(Stream& stream, const ColumnArguments& columns) = nullptr;
};

// All sizes, those for few before those for more; compiled side by side. `most` and `few` are what
// measurements on an H200 showed: above them the next is faster.
void add_short_rows(std::vector<BatchKernels>& all);
void add_long_rows(std::vector<BatchKernels>& all);
void add_block_planes(std::vector<BatchKernels>& all);
std::vector<ColumnKernels> column_kernels();
// Entries Group, Group + plane_major_groups ... of plane_major_shapes (tuned_on_h200.h); each file of instances/
// compiles one group, for compilers to work on several at once.
constexpr int plane_major_groups = 4;
template <int Group>
void add_group_of_plane_major(std::vector<BatchKernels>& all);

}  // namespace twiddle::small_fft
