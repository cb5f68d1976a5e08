#pragma once
#include "framework/tensor.h"

namespace twiddle {

// Operations that several layers and optimizers share. All tensors are f32 on the stream's device.
void add(Stream& stream, const Tensor& a, const Tensor& b, Tensor& sum);  // sum = a + b, elementwise; sum may be a or b
void add_bias(Stream& stream, const Tensor& bias, std::int64_t inner,
              Tensor& y);  // y [outer, channels, inner] += bias [channels]
// y [outer, channels, inner] to [channels]: the gradient of a bias.
Tensor sum_over_channels(Stream& stream, const Tensor& y, std::int64_t channels, std::int64_t inner);
// Returns the L2 norm over all tensors, one element. It is not finite if and only if an element is not finite.
Tensor l2_norm(Stream& stream, const std::vector<Tensor>& tensors);
// x = x limit / norm if norm > limit; norm has one element. If it is not finite, all of x becomes NaN, so that any
// single element shows the failure.
void limit_norm(Stream& stream, const Tensor& norm, float limit, Tensor& x);
bool all_finite(Stream& stream, const Tensor& x);  // waits for the stream

}  // namespace twiddle
