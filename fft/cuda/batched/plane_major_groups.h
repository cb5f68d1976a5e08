#pragma once
#include <iterator>
#include <utility>

#include "fft/cuda/batched/batched_launch.h"
#include "fft/cuda/batched/plane_major_fft.h"

namespace twiddle::small_fft {

template <int Group, std::size_t I>
void add_if_of_group(std::vector<BatchKernels>& all) {
  if constexpr (I % plane_major_groups == Group) {
    constexpr PlaneMajorShape shape = plane_major_shapes[I];
    constexpr int H = shape.height, W = shape.width, P = shape.planes, Few = shape.few_in_block;
    if constexpr (shape.few > 0) all.push_back(batch_kernels<DirectPlaneMajor<H, W, Few>, 1>(H, W, shape.few));
    all.push_back(batch_kernels<PlaneMajor<H, W, P>, shape.min_blocks>(H, W));
  }
}
template <int Group, std::size_t... I>
void add_group_of_plane_major(std::vector<BatchKernels>& all, std::index_sequence<I...>) {
  (add_if_of_group<Group, I>(all), ...);
}
template <int Group>
void add_group_of_plane_major(std::vector<BatchKernels>& all) {
  add_group_of_plane_major<Group>(all, std::make_index_sequence<std::size(plane_major_shapes)>());
}

}  // namespace twiddle::small_fft
