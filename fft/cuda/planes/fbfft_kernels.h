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
  void (*forward)(Stream& stream, const ForwardArguments& arguments) = nullptr;
  void (*inverse)(Stream& stream, const InverseArguments& arguments) = nullptr;
};

// sums[column], or what it holds and, where `add`: the real parts of the first bin, [rows][columns], summed over rows.
void sum_first_bin(Stream& stream, std::int64_t rows, std::int64_t columns, const Complex* bin, bool add, float* sums);

std::vector<PlaneKernels> all_planes();

// What these are made of: groups that are compiled side by side.
void add_small_planes(std::vector<PlaneKernels>& all);
void add_middle_planes(std::vector<PlaneKernels>& all);
void add_large_planes(std::vector<PlaneKernels>& all);
void add_wide_planes(std::vector<PlaneKernels>& all);
void add_tall_planes(std::vector<PlaneKernels>& all);

}  // namespace twiddle::small_fft
