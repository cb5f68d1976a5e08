#pragma once
#include <torch/csrc/stable/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "python/src/convolutions.h"

namespace twiddle {

// What the operators have in common behind their tensors.
struct Manner {
  std::vector<std::int64_t> stride, padding, dilation;  // pairs: of rows and of columns
  std::int64_t groups;
  std::string precision;
  std::int64_t workspace_limit;
  std::string engine;
  bool deterministic;
};

// Throws what is wrong with them.
ConvProblem problem_of(const Shape& x, const Shape& weight, bool bias, const Manner& manner);
ConvWish wish_of(const Manner& manner);
void check_operands(const torch::stable::Tensor& first, const torch::stable::Tensor& second);
void expect_shape(const char* what, const Shape& found, const Shape& wanted);

}  // namespace twiddle
