#pragma once
#include <iterator>
#include <utility>

#include "fft/cuda/planes/channel_inverse_kernels.h"
#include "fft/cuda/planes/plane_launch.h"

namespace twiddle::small_fft {

// The shape of the blocks that invert a stored spectrum of that size. A depthwise layer has fewer than many_planes.
constexpr BlockShape inverse_shape_of(int points) {
  for (const PlaneShape& shape : plane_shapes)
    if (shape.height == points && shape.width == points) return shape.inverse.few;
  return {};
}

template <int N>
void launch_channel_inverse(Stream& stream, const ChannelProductArguments& arguments) {
  constexpr BlockShape shape = inverse_shape_of(N);
  static_assert(shape.planes > 0, "a size of plane_shapes");
  launch_stored_inverse<N, N, ChannelProductSource<shape.planes>, shape>(stream, arguments);
}

template <int Group, std::size_t I>
void add_if_of_group(std::vector<ChannelInverseKernel>& all) {
  constexpr int points = channel_inverse_points[I];
  if constexpr (I % channel_inverse_groups == Group) all.push_back({points, launch_channel_inverse<points>});
}
template <int Group, std::size_t... I>
void add_channel_inverses(std::vector<ChannelInverseKernel>& all, std::index_sequence<I...>) {
  (add_if_of_group<Group, I>(all), ...);
}
template <int Group>
void add_channel_inverses(std::vector<ChannelInverseKernel>& all) {
  add_channel_inverses<Group>(all, std::make_index_sequence<std::size(channel_inverse_points)>());
}

}  // namespace twiddle::small_fft
