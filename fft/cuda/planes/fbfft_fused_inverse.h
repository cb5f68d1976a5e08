#pragma once
#include <vector>

#include "fft/cuda/planes/channel_inverse_kernels.h"
#include "fft/cuda/planes/fused_inverse_kernels.h"
#include "fft/fused_inverse.h"

namespace twiddle {

// A product and its inverse as one kernel, for spectra of an FbfftTransform: of forward passes of at most
// small_fft::most_fused_channels channels, and of depthwise convolutions.
class FbfftFusedInverse final : public FusedInverse {
 public:
  FbfftFusedInverse();

  std::string_view name() const override { return "in the inverse"; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved; }
  bool supports(const FrequencyGemm& gemm, const Planes& planes) const override;
  void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, const Planes& planes, float* target,
           const PlaneEpilogue& epilogue, void* scratch) override;

 private:
  const small_fft::FusedInverseKernel* find(const FrequencyGemm& gemm, const Planes& planes) const;  // null: none
  const small_fft::ChannelInverseKernel* find_depthwise(const Planes& planes) const;                 // null: none
  std::vector<small_fft::FusedInverseKernel> all_;
  std::vector<small_fft::ChannelInverseKernel> depthwise_;
};

}  // namespace twiddle
