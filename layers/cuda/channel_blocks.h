#pragma once
#include "layers/moments.h"
#include "layers/planes.h"

namespace twiddle {

// What batch norm's passes over a batch read and write: x, y, `other` and their gradients as [batch, channels, inner],
// the rest as [channels]. `inverse` is 1 / deviation.
struct ChannelStatistics {
  float momentum, epsilon;
  float *mean, *inverse, *running_mean, *running_var;
};

template <class T>
struct ChannelForward {
  BatchShape planes;
  ChannelStatistics statistics;
  bool relu;
  const T *x, *other;  // `other` is added before the ReLU; null: nothing is
  const float *scale, *bias;
  T* y;
};

// What decides which gradients pass the ReLU: no ReLU; x, whose result is computed again, which reads less than the
// result; or the result, if another path's output was added.
enum class ReluGate { none, input, output };

template <class T>
struct ChannelBackward {
  BatchShape planes;
  ReluGate gate;
  const T *x, *y, *grad_y;  // y: null unless the gate is the output
  const float *mean, *inverse, *scale, *bias;
  T* passed;  // the gradient before the ReLU, written if the gate is the output; else null
  float *grad_scale, *grad_bias;
  T* grad_x;
};

// Stores mean, 1 / deviation and the running averages. The running variance is the unbiased one, as in PyTorch. Running
// averages stay as they are if one would not be finite: training in fp16 skips such a batch and continues.
TWIDDLE_HD inline void store_statistics(const ChannelStatistics& to, std::int64_t channel, const Moments& all,
                                        float inverse) {
  const auto mean = static_cast<float>(all.mean);
  const auto unbiased = static_cast<float>(all.deviations / (all.count > 1 ? all.count - 1 : 1));
  to.mean[channel] = mean;
  to.inverse[channel] = inverse;
  const float next_mean = to.running_mean[channel] + to.momentum * (mean - to.running_mean[channel]);
  const float next_var = to.running_var[channel] + to.momentum * (unbiased - to.running_var[channel]);
  if (next_mean - next_mean != 0 || next_var - next_var != 0) return;
  to.running_mean[channel] = next_mean;
  to.running_var[channel] = next_var;
}

// Batch norm on a GPU where the shared memory of a block, or of a cluster of blocks, holds a channel of all images:
// memory is read and written once. Both return false, having done nothing, where there is no GPU or a channel does not
// fit. A GPU before sm_90 has no clusters.
template <class T>
bool normalize_channels_in_blocks(Stream& stream, const ChannelForward<T>& pass);
template <class T>
bool normalize_channels_backward_in_blocks(Stream& stream, const ChannelBackward<T>& pass);

}  // namespace twiddle
