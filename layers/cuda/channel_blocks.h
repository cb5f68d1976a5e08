#pragma once
#include "layers/planes.h"

namespace twiddle {

// What batch norm's passes over a batch read and write: x, y, `other` and their gradients as [batch, channels, inner],
// the rest as [channels]. `inverse` is 1 / deviation.
struct ChannelForward {
  BatchShape planes;
  float momentum, epsilon;
  bool relu;
  const float *x, *other;  // `other` is added before the ReLU; null: nothing is
  const float *scale, *bias;
  float *mean, *inverse, *running_mean, *running_var, *y;
};

struct ChannelBackward {
  BatchShape planes;
  bool relu;
  const float *x, *y;  // y tells what the ReLU let through; null: x does
  const float *grad_y, *mean, *inverse, *scale, *bias;
  float *passed, *grad_scale, *grad_bias,
      *grad_x;  // `passed`, the gradient before the ReLU, is written where y is given
};

// Batch norm on a GPU where the shared memory of a block, or of a cluster of blocks, holds a channel of all images:
// memory is read and written once. Both return false, having done nothing, where there is no GPU or a channel does not
// fit. A GPU before sm_90 has no clusters.
bool normalize_channels_in_blocks(Stream& stream, const ChannelForward& pass);
bool normalize_channels_backward_in_blocks(Stream& stream, const ChannelBackward& pass);

}  // namespace twiddle
