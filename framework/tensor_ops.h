#pragma once
#include "framework/tensor.h"

namespace twiddle {

// Operations that several layers and optimizers share. All tensors are f32 on the stream's device.
void add(Stream& stream, const Tensor& a, const Tensor& b, Tensor& sum);  // sum = a + b, elementwise; sum may be a or b
void add_bias(Stream& stream, const Tensor& bias, std::int64_t inner,
              Tensor& y);  // y [outer, channels, inner] += bias [channels]
// y [outer, channels, inner] to [channels]: the gradient of a bias.
Tensor sum_over_channels(Stream& stream, const Tensor& y, std::int64_t channels, std::int64_t inner);
// Of all together, one element; not finite where an element is not, and only there.
Tensor l2_norm(Stream& stream, const std::vector<Tensor>& tensors);
// x = x limit / norm where that shortens it; norm has one element. Where it is not finite, all of x becomes NaN: no
// length is right then, and whoever looks at one element sees it.
void limit_norm(Stream& stream, const Tensor& norm, float limit, Tensor& x);
bool all_finite(Stream& stream, const Tensor& x);  // waits for the stream

}  // namespace twiddle
