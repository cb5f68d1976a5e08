#pragma once
#include <vector>

#include "fft/cuda/planes/channel_product_source.h"
#include "framework/device.h"

namespace twiddle::small_fft {

// A depthwise product and its inverse transform in one kernel, for one size of square planes.
struct ChannelInverseKernel {
  int points = 0;
  void (*run)(Stream& stream, const ChannelProductArguments& arguments) = nullptr;
};

// All sizes. Each file of instances/ compiles every channel_inverse_groups'th.
constexpr int channel_inverse_groups = 3;
template <int Group>
void add_channel_inverses(std::vector<ChannelInverseKernel>& all);

}  // namespace twiddle::small_fft
