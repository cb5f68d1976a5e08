#pragma once
#include <vector>

#include "fft/cuda/planes/fused_product_source.h"
#include "framework/device.h"

namespace twiddle::small_fft {

// A product of few `channels` and its inverse transform in one kernel, for one size of planes.
struct FusedInverseKernel {
  int height = 0, width = 0, channels = 0;
  void (*run)(Stream& stream, const PlaneTarget& target, const FrequencyGemm& gemm, const void* a,
              const void* b) = nullptr;
};

// All sizes, of 1 to most_fused_channels channels. Each file of instances/ compiles one number of channels.
constexpr int most_fused_channels = 4;
template <int Channels>
void add_fused_inverses(std::vector<FusedInverseKernel>& all);

}  // namespace twiddle::small_fft
