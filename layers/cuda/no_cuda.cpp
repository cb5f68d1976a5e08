#include "layers/cuda/channel_blocks.h"
#include "layers/cuda/max_pool_gradient.h"
#include "layers/cuda/norm_ranges.h"
#include "layers/cuda/pixel_blocks.h"

namespace twiddle {

template <class T>
bool normalize_channels_in_blocks(Stream&, const ChannelForward<T>&) {
  return false;
}

template <class T>
bool normalize_channels_backward_in_blocks(Stream&, const ChannelBackward<T>&) {
  return false;
}

template bool normalize_channels_in_blocks(Stream&, const ChannelForward<float>&);
template bool normalize_channels_in_blocks(Stream&, const ChannelForward<Bf16>&);
template bool normalize_channels_in_blocks(Stream&, const ChannelForward<Half>&);
template bool normalize_channels_backward_in_blocks(Stream&, const ChannelBackward<float>&);
template bool normalize_channels_backward_in_blocks(Stream&, const ChannelBackward<Bf16>&);
template bool normalize_channels_backward_in_blocks(Stream&, const ChannelBackward<Half>&);

bool max_pool_gradient_in_shared_memory(Stream&, const PoolWindow&, const Tensor&, const Tensor&, Tensor&) {
  return false;
}

bool normalize_in_ranges(Stream&, const Lrn&, const Tensor&, Tensor&) {
  return false;
}

bool normalize_backward_in_ranges(Stream&, const Lrn&, const Tensor&, const Tensor&, Tensor&) {
  return false;
}

template <class T>
bool normalize_pixels_in_blocks(Stream&, const PixelForward<T>&) {
  return false;
}

template <class T>
bool normalize_pixels_backward_in_blocks(Stream&, const PixelBackward<T>&) {
  return false;
}

template bool normalize_pixels_in_blocks(Stream&, const PixelForward<float>&);
template bool normalize_pixels_in_blocks(Stream&, const PixelForward<Bf16>&);
template bool normalize_pixels_in_blocks(Stream&, const PixelForward<Half>&);
template bool normalize_pixels_backward_in_blocks(Stream&, const PixelBackward<float>&);
template bool normalize_pixels_backward_in_blocks(Stream&, const PixelBackward<Bf16>&);
template bool normalize_pixels_backward_in_blocks(Stream&, const PixelBackward<Half>&);

}  // namespace twiddle
