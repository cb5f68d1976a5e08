#include "layers/cuda/channel_blocks.h"
#include "layers/cuda/max_pool_gradient.h"
#include "layers/cuda/norm_ranges.h"
#include "layers/cuda/pixel_blocks.h"

namespace twiddle {

bool normalize_channels_in_blocks(Stream&, const ChannelForward&) {
  return false;
}

bool normalize_channels_backward_in_blocks(Stream&, const ChannelBackward&) {
  return false;
}

bool max_pool_gradient_in_shared_memory(Stream&, const PoolWindow&, const Tensor&, const Tensor&, Tensor&) {
  return false;
}

bool normalize_in_ranges(Stream&, const Lrn&, const Tensor&, Tensor&) {
  return false;
}

bool normalize_backward_in_ranges(Stream&, const Lrn&, const Tensor&, const Tensor&, Tensor&) {
  return false;
}

bool normalize_pixels_in_blocks(Stream&, const PixelForward&) {
  return false;
}

bool normalize_pixels_backward_in_blocks(Stream&, const PixelBackward&) {
  return false;
}

}  // namespace twiddle
