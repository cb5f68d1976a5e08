#pragma once
#include "framework/convolution.h"
#include "framework/device.h"

namespace twiddle {

// A 1x1 kernel without stride or padding: a matrix product of each image and group.
inline bool is_product(const ConvProblem& p) {
  return p.kernel_h == 1 && p.kernel_w == 1 && p.stride_h == 1 && p.stride_w == 1 && p.pad_h == 0 && p.pad_w == 0;
}

// A product of the whole batch: a linear layer.
inline bool is_linear(const ConvProblem& p) {
  return is_product(p) && p.height == 1 && p.width == 1 && p.groups == 1;
}

// Its product: y = x w^T, grad_x = grad_y w, grad_w = grad_y^T x.
inline Gemm linear_product(const ConvProblem& p, ConvPass pass) {
  const bool tf32 = p.precision != Precision::fp32;
  switch (pass) {
    case ConvPass::forward:
      return {.transpose_b = true, .m = p.batch, .n = p.filters, .k = p.channels, .tf32 = tf32};
    case ConvPass::backward_input:
      return {.m = p.batch, .n = p.channels, .k = p.filters, .tf32 = tf32};
    default:
      return {.transpose_a = true, .m = p.filters, .n = p.channels, .k = p.batch, .tf32 = tf32};
  }
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

// The factors of linear_product.
struct LinearFactors {
  const float *a, *b;
};
inline LinearFactors linear_factors(ConvPass pass, const PassArrays& arrays) {
  return {pass == ConvPass::forward ? arrays.x : arrays.y, pass == ConvPass::backward_weight ? arrays.x : arrays.w};
}

// The elements, whatever their type.
inline const void* elements_of(const Tensor& tensor) {
  return with_type(tensor.type(), [&](auto t) -> const void* { return tensor.read<decltype(t)>(); });
}
inline void* write_elements_of(Tensor& tensor) {
  return with_type(tensor.type(), [&](auto t) -> void* { return tensor.write<decltype(t)>(); });
}

inline const float* read_if_defined(const Tensor& tensor) {
  return tensor.defined() ? tensor.read() : nullptr;
}

}  // namespace twiddle
