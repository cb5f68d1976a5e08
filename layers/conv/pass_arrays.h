#pragma once
#include "framework/convolution.h"

namespace twiddle {

// A 1x1 kernel without stride or padding: a matrix product of each image and group.
inline bool is_product(const ConvProblem& p) {
  return p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 && p.stride_w == 1 && p.pad_h == 0 && p.pad_w == 0;
}

// The tensor that a pass writes.
inline Tensor& result_of(ConvPass pass, ConvOperands& operands) {
  return pass == ConvPass::forward ? operands.y : pass == ConvPass::backward_input ? operands.x : operands.w;
}

// What a pass reads, null for what it does not, and what it writes.
struct PassArrays {
  const float *x = nullptr, *w = nullptr, *y = nullptr;
  float* result = nullptr;
};
inline PassArrays arrays_of(ConvPass pass, ConvOperands& operands) {
  Tensor& result = result_of(pass, operands);
  const auto read = [&](const Tensor& tensor) { return &tensor == &result ? nullptr : tensor.read(); };
  return {read(operands.x), read(operands.w), read(operands.y), result.write()};
}

inline const float* read_if_defined(const Tensor& tensor) {
  return tensor.defined() ? tensor.read() : nullptr;
}

}  // namespace twiddle
