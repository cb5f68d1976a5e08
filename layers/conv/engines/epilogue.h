#pragma once
#include "framework/convolution.h"

namespace twiddle {

// What follows a convolution in the forward pass, in one pass over y [batch, filters, ...]: y = y + bias where it is
// defined, and max(y, 0) where operands.relu says so. For engines that do neither themselves.
void add_bias_and_relu(Stream& stream, ConvOperands& operands);

// max(y, 0) in place, for engines that add the bias themselves.
void relu_in_place(Stream& stream, Tensor& y);

// Whether the plans of the backward passes (null: the pass is not run) do that of bias and ReLU themselves, which
// saves a pass over y's gradient. With a ReLU all of them must: each reads that gradient.
bool plans_do_epilogue_backward(const ConvPlan* of_input, const ConvPlan* of_weight, bool relu);

// The backward pass of both: where relu, grad_y becomes its part where y is above zero (a new tensor, others may hold
// the old one); returned is the gradient of the bias [filters], undefined if not needed.
Tensor relu_and_bias_backward(Stream& stream, const Tensor& y, bool relu, bool wants_bias, Tensor& grad_y);

}  // namespace twiddle
