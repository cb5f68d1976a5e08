#pragma once
#include "apps/bench/cuda/batched_launch.h"
#include "apps/bench/cuda/plane_major_fft.h"

namespace twiddle::small_fft {

template <PlaneMajorShape shape>
void add_plane_major(std::vector<BatchKernels>& all) {
  constexpr int H = shape.height, W = shape.width;
  if constexpr (shape.few > 0)
    all.push_back(batch_kernels<DirectPlaneMajor<H, W, shape.few_in_block>, 1>(H, W, shape.few));
  all.push_back(batch_kernels<PlaneMajor<H, W, shape.planes>, shape.min_blocks>(H, W));
}

template <int Group, std::size_t... I>
void add_group_of_plane_major(std::vector<BatchKernels>& all, std::index_sequence<I...>) {
  (add_plane_major<plane_major_shapes[Group + I * plane_major_groups]>(all), ...);
}
template <int Group>
void add_group_of_plane_major(std::vector<BatchKernels>& all) {
  constexpr std::size_t shapes = (std::size(plane_major_shapes) - Group - 1) / plane_major_groups + 1;
  add_group_of_plane_major<Group>(all, std::make_index_sequence<shapes>());
}

}  // namespace twiddle::small_fft
