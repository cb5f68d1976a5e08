#pragma once
#include <iterator>
#include <utility>

#include "fft/cuda/planes/fbfft_kernels.h"
#include "fft/cuda/planes/plane_launch.h"

namespace twiddle::small_fft {

template <int Group, std::size_t I>
void fill_if_of_group(std::vector<PlaneKernels>& all) {
  if constexpr (I % plane_groups == Group) all[I] = plane_kernels<plane_shapes[I]>();
}
template <int Group, std::size_t... I>
void fill_group_of_planes(std::vector<PlaneKernels>& all, std::index_sequence<I...>) {
  (fill_if_of_group<Group, I>(all), ...);
}
template <int Group>
void fill_group_of_planes(std::vector<PlaneKernels>& all) {
  fill_group_of_planes<Group>(all, std::make_index_sequence<std::size(plane_shapes)>());
}

}  // namespace twiddle::small_fft
