#pragma once
#include <cstddef>
#include <vector>

#include "fft/cuda/planes/plane_arguments.h"
#include "framework/device.h"

namespace twiddle::small_fft {

// The kernels of one size of planes, and how its spectra are stored: see PlaneSize.
struct PlaneKernels {
  int height = 0, width = 0;
  std::int64_t bins = 0;
  bool stores_halves = false;  // whether forward may be given exponents
  void (*forward)(Stream& stream, const ForwardArguments& arguments) = nullptr;
  void (*inverse)(Stream& stream, const InverseArguments& arguments) = nullptr;
};

// sums[column] = (add ? sums[column] : 0) + the sum over rows of the real parts of bin 0, [rows][columns]. Bin 0 of a
// plane is the sum of its elements, so that this is the gradient of the bias.
void sum_first_bin(Stream& stream, std::int64_t rows, std::int64_t columns, const Complex* bin, bool add, float* sums);

// All sizes, in the order of plane_shapes (tuned_on_h200.h).
std::vector<PlaneKernels> all_planes();

// Entries Group, Group + plane_groups ... of the same. Each file of instances/ compiles one group, for compilers to
// work on several at once.
constexpr int plane_groups = 5;
template <int Group>
void fill_group_of_planes(std::vector<PlaneKernels>& all);

}  // namespace twiddle::small_fft
