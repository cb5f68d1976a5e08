#pragma once
#include <iterator>
#include <utility>

#include "fft/cuda/planes/fused_inverse_kernels.h"
#include "fft/cuda/planes/plane_launch.h"

namespace twiddle::small_fft {

template <int Channels, FusedInverseShape Shape>
FusedInverseKernel fused_inverse_kernel() {
  constexpr int N = Shape.points;
  return {N, N, Channels,
          [](Stream& stream, const PlaneTarget& target, const FrequencyGemm& gemm, const void* a, const void* b) {
            using Source = FusedProductSource<Channels, Shape.rows, Shape.columns>;
            launch_inverse<N, N, Source, Shape.min_blocks>(stream, Source::arguments(target, gemm, a, b));
          }};
}

template <int Channels, std::size_t... I>
void add_fused_inverses(std::vector<FusedInverseKernel>& all, std::index_sequence<I...>) {
  (all.push_back(fused_inverse_kernel<Channels, fused_inverse_shapes[I]>()), ...);
}
template <int Channels>
void add_fused_inverses(std::vector<FusedInverseKernel>& all) {
  add_fused_inverses<Channels>(all, std::make_index_sequence<std::size(fused_inverse_shapes)>());
}

}  // namespace twiddle::small_fft
