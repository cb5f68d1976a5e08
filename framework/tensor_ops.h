#pragma once
#include "framework/tensor.h"

namespace twiddle {

// Operations that several layers and optimizers share. All tensors are on the stream's device, and f32 unless noted.
// Sums are computed in f32 or double.
// sum = a + b, elementwise; all of one type, f32, bf16 or f16. sum may be a or b.
void add(Stream& stream, const Tensor& a, const Tensor& b, Tensor& sum);
// Returns x with elements of `type`, rounded to nearest even: x itself if it has that type or is undefined. f32, bf16
// and f16.
Tensor cast(Stream& stream, const Tensor& x, DType type);
void cast_into(Stream& stream, const Tensor& x, Tensor& y);  // y = x, rounded to y's type
// y [outer, channels, inner] += bias [channels]; y may be bf16 or f16.
void add_bias(Stream& stream, const Tensor& bias, std::int64_t inner, Tensor& y);
// y [outer, channels, inner], also of bf16 or f16, to f32 [channels]: the gradient of a bias.
Tensor sum_over_channels(Stream& stream, const Tensor& y, std::int64_t channels, std::int64_t inner);
// Returns the L2 norm over all tensors, one element. It is not finite if and only if an element is not finite.
Tensor l2_norm(Stream& stream, const std::vector<Tensor>& tensors);
bool all_finite(Stream& stream, const Tensor& x);  // waits for the stream; x may be bf16 or f16

}  // namespace twiddle
