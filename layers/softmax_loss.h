#pragma once
#include "framework/context.h"

namespace twiddle {

// Mean cross entropy of softmax(logits) against the labels, in nats, as a one-element variable.
// logits [batch, classes] (trailing axes of 1 are allowed), labels i32 [batch] in [0, classes).
Variable softmax_loss(Context& ctx, const Variable& logits, const Tensor& labels, float label_smoothing = 0);

// Probabilities, row by row: exp(logits) / sum.
Tensor softmax(Stream& stream, const Tensor& logits);

// For each row whether the label is first (rank 0) or how many classes score higher; i32 [batch].
Tensor label_ranks(Stream& stream, const Tensor& logits, const Tensor& labels);

}  // namespace twiddle
