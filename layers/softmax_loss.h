#pragma once
#include "framework/context.h"

namespace twiddle {

// Mean cross entropy of softmax(logits) against the targets, in nats, as a one-element variable.
// logits [batch, classes] (trailing axes of 1 are allowed); targets are labels i32 [batch] in [0, classes), or the
// share that each class has of a row, f32 [batch, classes], which sum to 1. Smoothing moves that part of each row's
// target evenly to all classes. `class_weights`, f32 [classes] where given, are factors of each class's part of a row's
// loss, and the mean is the sum over the rows divided by the weights of their targets, as PyTorch's CrossEntropyLoss
// has it for labels; of ranks that share a batch, by the mean weight of a row of all of them. `sums`, two numbers f32
// where given, grow by the mean times the rows, and by the rows whose label (or the class of the largest share) comes
// first.
Variable softmax_loss(Context& ctx, const Variable& logits, const Tensor& targets, float label_smoothing = 0,
                      Tensor* sums = nullptr, const Tensor& class_weights = {});

// What a rank without a row of the batch does for that mean weight.
void softmax_loss_without_rows(Context& ctx);

// Probabilities, row by row: exp(logits) / sum.
Tensor softmax(Stream& stream, const Tensor& logits);

}  // namespace twiddle
