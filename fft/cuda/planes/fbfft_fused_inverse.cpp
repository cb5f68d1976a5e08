#include "fft/cuda/planes/fbfft_fused_inverse.h"

#include <algorithm>

#include "fft/cuda/planes/plane_arguments.h"
#include "framework/error.h"

namespace twiddle {

FbfftFusedInverse::FbfftFusedInverse() {
  small_fft::add_fused_inverses<1>(all_);
  small_fft::add_fused_inverses<2>(all_);
  small_fft::add_fused_inverses<3>(all_);
  small_fft::add_fused_inverses<4>(all_);
  small_fft::add_channel_inverses<0>(depthwise_);
  small_fft::add_channel_inverses<1>(depthwise_);
  small_fft::add_channel_inverses<2>(depthwise_);
}

const small_fft::FusedInverseKernel* FbfftFusedInverse::find(const FrequencyGemm& gemm, const Planes& planes) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const small_fft::FusedInverseKernel& each) {
    return each.height == planes.grid.height && each.width == planes.grid.width && each.channels == gemm.k;
  });
  return found == all_.end() ? nullptr : &*found;
}

const small_fft::ChannelInverseKernel* FbfftFusedInverse::find_depthwise(const Planes& planes) const {
  const auto found = std::find_if(depthwise_.begin(), depthwise_.end(), [&](const auto& each) {
    return each.points == planes.grid.height && each.points == planes.grid.width;
  });
  return found == depthwise_.end() ? nullptr : &*found;
}

bool FbfftFusedInverse::supports(const FrequencyGemm& gemm, const Planes& planes) const {
  if (gemm.is_depthwise()) return !gemm.transpose_a && find_depthwise(planes) != nullptr;
  const small_fft::Colours colours(planes);
  const bool adds = gemm.accumulate || colours.height * colours.width > 1;
  const bool by_rows = !gemm.transpose_a && gemm.transpose_b && !gemm.conjugate_a && gemm.conjugate_b;
  return gemm.groups == 1 && by_rows && !adds && find(gemm, planes) != nullptr;
}

void FbfftFusedInverse::run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, const Planes& planes,
                            float* target, const PlaneEpilogue& epilogue, void*) {
  require(supports(gemm, planes), "fbfft has no product in the inverse for ", gemm.k, " channels and planes of ",
          to_string(planes.grid));
  if (gemm.is_depthwise()) {
    small_fft::for_each_colour(planes, a, target, epilogue, [&](const small_fft::InverseArguments& arguments) {
      find_depthwise(planes)->run(*ctx.stream, {arguments, static_cast<const small_fft::Complex*>(b), planes.columns,
                                                gemm.conjugate_b ? -1.0f : 1.0f});
    });
    return;
  }
  find(gemm, planes)
      ->run(*ctx.stream, small_fft::plane_target(planes, small_fft::TileMap(planes), false, target, epilogue), gemm, a,
            b);
}

}  // namespace twiddle
