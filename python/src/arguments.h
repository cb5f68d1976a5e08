#pragma once
#include <torch/csrc/stable/tensor.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "python/src/convolutions.h"

namespace twiddle {

// What the operators take beside their tensors.
struct ConvArguments {
  std::vector<std::int64_t> stride, padding, dilation;  // pairs: of rows and of columns
  std::int64_t groups;
  std::string precision;
  std::int64_t workspace_limit;
  std::string engine;
  bool deterministic;
  auto operator<=>(const ConvArguments&) const = default;
};

// Equal arguments have one id in this process, so that a call from Python needs to hand over no more than that.
std::int64_t id_of(const ConvArguments& arguments);
const ConvArguments& arguments_of(std::int64_t id);

// These throw what is wrong.
ConvProblem problem_of(const Shape& x, const Shape& weight, bool bias, const ConvArguments& arguments);
ConvOptions options_of(const ConvArguments& arguments);
void check_operands(const torch::stable::Tensor& first, const torch::stable::Tensor& second);
void expect_shape(const char* what, const Shape& found, const Shape& wanted);

}  // namespace twiddle
