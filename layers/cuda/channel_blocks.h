#pragma once
#include "layers/moments.h"
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

// What decides which gradients pass the ReLU: no ReLU; x, whose result is computed again, which reads less than the
// result; or the result, if another path's output was added.
enum class ReluGate { none, input, output };

struct ChannelBackward {
  BatchShape planes;
  ReluGate gate;
  const float *x, *y;  // y: null unless the gate is the output
  const float *grad_y, *mean, *inverse, *scale, *bias;
  float* passed;  // the gradient before the ReLU, written if the gate is the output; else null
  float *grad_scale, *grad_bias, *grad_x;
};

// Stores mean, 1 / deviation and the running averages. The running variance is the unbiased one, as in PyTorch.
TWIDDLE_HD inline void store_statistics(const ChannelForward& pass, std::int64_t channel, const Moments& all,
                                        float inverse) {
  const auto mean = static_cast<float>(all.mean);
  const auto unbiased = static_cast<float>(all.deviations / (all.count > 1 ? all.count - 1 : 1));
  pass.mean[channel] = mean;
  pass.inverse[channel] = inverse;
  pass.running_mean[channel] += pass.momentum * (mean - pass.running_mean[channel]);
  pass.running_var[channel] += pass.momentum * (unbiased - pass.running_var[channel]);
}

// Batch norm on a GPU where the shared memory of a block, or of a cluster of blocks, holds a channel of all images:
// memory is read and written once. Both return false, having done nothing, where there is no GPU or a channel does not
// fit. A GPU before sm_90 has no clusters.
bool normalize_channels_in_blocks(Stream& stream, const ChannelForward& pass);
bool normalize_channels_backward_in_blocks(Stream& stream, const ChannelBackward& pass);

}  // namespace twiddle
