#pragma once
#include "layers/conv/pass_arrays.h"

namespace twiddle {

// The convolution of y's gradient whose result is x's, where the stride is 1: channels and filters change places.
inline ConvProblem transposed(const ConvProblem& p) {
  ConvProblem back = p;
  back.channels = p.filters, back.filters = p.channels;
  back.height = p.out_height(), back.width = p.out_width();
  back.pad_h = p.dilation * (p.kernel_h - 1) - p.pad_h, back.pad_w = p.dilation * (p.kernel_w - 1) - p.pad_w;
  return back;
}

// The problem whose forward pass computes this one's forward or backward_input.
inline ConvProblem forward_problem(const ConvProblem& problem, ConvPass pass) {
  return pass == ConvPass::backward_input ? transposed(problem) : problem;
}

// What its kernels read and write; in backward_input with w turned.
struct ForwardOperands {
  const float *x, *w, *bias;
  bool relu, turned;
  float* y;
};
inline ForwardOperands forward_operands(ConvPass pass, ConvOperands& operands) {
  if (pass == ConvPass::backward_input)
    return {operands.y.read(), operands.w.read(), nullptr, false, true, operands.x.write()};
  return {operands.x.read(), operands.w.read(), read_if_defined(operands.bias), operands.relu, false,
          operands.y.write()};
}

}  // namespace twiddle
