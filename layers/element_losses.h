#pragma once
#include "framework/context.h"

namespace twiddle {

// Losses that are a mean over all elements of the batch, as a one-element variable. Outputs and targets are f32 and
// have the same number of elements, [batch, ...]. The first of `sums`, two numbers f32 where given, grows by the mean
// times the batch.

// Binary cross entropy of sigmoid(logits) against targets from 0 to 1, in nats: for each element
//   -(w t log s + (1 - t) log(1 - s)), s = sigmoid(x),
// as PyTorch's BCEWithLogitsLoss. `positive_weights` w, f32 with one number for each element of a row, or none: 1.
Variable binary_cross_entropy(Context& ctx, const Variable& logits, const Tensor& targets, Tensor* sums = nullptr,
                              const Tensor& positive_weights = {});

// The mean of (output - target)^2.
Variable mean_squared_error(Context& ctx, const Variable& output, const Tensor& targets, Tensor* sums = nullptr);

}  // namespace twiddle
