#pragma once
#include "framework/context.h"

namespace twiddle {

// Mean cross entropy of softmax(logits) against the labels, in nats, as a one-element variable.
// logits [batch, classes] (trailing axes of 1 are allowed), labels i32 [batch] in [0, classes).
// `sums`, two numbers f32 where given, grow by the rows' losses together and by the rows whose label comes first.
Variable softmax_loss(Context& ctx, const Variable& logits, const Tensor& labels, float label_smoothing = 0,
                      Tensor* sums = nullptr);

// Probabilities, row by row: exp(logits) / sum.
Tensor softmax(Stream& stream, const Tensor& logits);

// For each row how many classes come before the label, i32 [batch]: 0 where it is first. Of equal scores the lower
// class comes first, and a NaN before all, so that a dead or broken network is not counted as right.
Tensor label_ranks(Stream& stream, const Tensor& logits, const Tensor& labels);

}  // namespace twiddle
