// The operators, as PyTorch's stable interface for libraries has them: shapes, gradients and all that happens before
// numbers are there is in twiddle_torch/ops.py.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <optional>
#include <string>
#include <vector>

#include "framework/gpu_check.h"
#include "framework/text.h"
#include "layers/conv/engines.h"
#include "python/src/convolutions.h"
#include "python/src/manner.h"
#include "python/src/torch_memory.h"

namespace twiddle {

namespace {

using TorchTensor = torch::stable::Tensor;
using Pair = std::vector<std::int64_t>;

void run(const ConvProblem& problem, ConvPass pass, const Manner& manner, ConvOperands operands) {
  const ConvWish wish = wish_of(manner);
  if (problem.batch > 0) convolutions_of(operands.x.device()).run(problem, pass, wish, operands);
}

TorchTensor conv2d(const TorchTensor& x, const TorchTensor& weight, const std::optional<TorchTensor>& bias, Pair stride,
                   Pair padding, Pair dilation, std::int64_t groups, std::string precision,
                   std::int64_t workspace_limit, std::string engine, bool deterministic) {
  const Manner manner{std::move(stride),    std::move(padding), std::move(dilation), groups,
                      std::move(precision), workspace_limit,    std::move(engine),   deterministic};
  const ConvProblem problem = problem_of(shape_of(x), shape_of(weight), bias.has_value(), manner);
  check_operands(x, weight);
  if (bias) {
    check_operands(x, *bias);
    expect_shape("bias", shape_of(*bias), {problem.filters});
  }
  const OnDevice here(device_of(x));
  const TorchTensor y = new_torch_tensor(device_of(x), problem.output_shape());
  const TorchTensor plain_x = plain(x), plain_weight = plain(weight);
  const std::optional<TorchTensor> plain_bias = bias ? std::optional(plain(*bias)) : std::nullopt;
  run(problem, ConvPass::forward, manner,
      {view_of(plain_x), view_of(plain_weight), view_of(y), plain_bias ? view_of(*plain_bias) : Tensor()});
  return y;
}

TorchTensor conv2d_backward_input(const TorchTensor& grad, const TorchTensor& weight, std::vector<std::int64_t> shape,
                                  Pair stride, Pair padding, Pair dilation, std::int64_t groups, std::string precision,
                                  std::int64_t workspace_limit, std::string engine, bool deterministic) {
  const Manner manner{std::move(stride),    std::move(padding), std::move(dilation), groups,
                      std::move(precision), workspace_limit,    std::move(engine),   deterministic};
  const ConvProblem problem = problem_of(shape, shape_of(weight), false, manner);
  check_operands(grad, weight);
  expect_shape("gradient", shape_of(grad), problem.output_shape());
  const OnDevice here(device_of(grad));
  const TorchTensor x = new_torch_tensor(device_of(grad), problem.input_shape());
  const TorchTensor plain_weight = plain(weight), plain_grad = plain(grad);
  run(problem, ConvPass::backward_input, manner, {view_of(x), view_of(plain_weight), view_of(plain_grad)});
  return x;
}

TorchTensor conv2d_backward_weight(const TorchTensor& grad, const TorchTensor& x, std::vector<std::int64_t> shape,
                                   Pair stride, Pair padding, Pair dilation, std::int64_t groups, std::string precision,
                                   std::int64_t workspace_limit, std::string engine, bool deterministic) {
  const Manner manner{std::move(stride),    std::move(padding), std::move(dilation), groups,
                      std::move(precision), workspace_limit,    std::move(engine),   deterministic};
  const ConvProblem problem = problem_of(shape_of(x), shape, false, manner);
  check_operands(grad, x);
  expect_shape("gradient", shape_of(grad), problem.output_shape());
  const OnDevice here(device_of(grad));
  TorchTensor weight = new_torch_tensor(device_of(grad), problem.weight_shape());
  if (problem.batch == 0) return torch::stable::zero_(weight);  // a sum of nothing
  const TorchTensor plain_x = plain(x), plain_grad = plain(grad);
  run(problem, ConvPass::backward_weight, manner, {view_of(plain_x), view_of(weight), view_of(plain_grad)});
  return weight;
}

std::string choices() {
  return all_choices();
}

// One line for each device that can be used, "cpu: ..." first, and why not for others; behind each its engines.
std::string devices() {
  const auto line = [](Device device) {
    std::string text = describe(device) + "\t";
    for (const auto& engine : make_conv_engines(device)) text += join(engine->name(), " ");
    return text + "\n";
  };
  std::string text = line({});
  for (int gpu = 0; gpu < cuda_device_count(); ++gpu) {
    const std::string why = why_unusable(look_at_gpu(gpu));
    text += why.empty() ? line({Device::Kind::cuda, gpu}) : join("cuda:", gpu, ": ", why, "\n");
  }
  return text;
}

}  // namespace

STABLE_TORCH_LIBRARY(twiddle, library) {
  library.def(
      "conv2d(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups, "
      "str precision, int workspace_limit, str engine, bool deterministic) -> Tensor");
  library.def(
      "conv2d_backward_input(Tensor grad, Tensor weight, SymInt[] input_shape, int[] stride, int[] padding, int[] "
      "dilation, int groups, str precision, int workspace_limit, str engine, bool deterministic) -> Tensor");
  library.def(
      "conv2d_backward_weight(Tensor grad, Tensor x, SymInt[] weight_shape, int[] stride, int[] padding, int[] "
      "dilation, int groups, str precision, int workspace_limit, str engine, bool deterministic) -> Tensor");
  library.def("choices() -> str");
  library.def("devices() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CPU, library) {
  library.impl("conv2d", TORCH_BOX(&conv2d));
  library.impl("conv2d_backward_input", TORCH_BOX(&conv2d_backward_input));
  library.impl("conv2d_backward_weight", TORCH_BOX(&conv2d_backward_weight));
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CUDA, library) {
  library.impl("conv2d", TORCH_BOX(&conv2d));
  library.impl("conv2d_backward_input", TORCH_BOX(&conv2d_backward_input));
  library.impl("conv2d_backward_weight", TORCH_BOX(&conv2d_backward_weight));
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CompositeExplicitAutograd, library) {
  library.impl("choices", TORCH_BOX(&choices));
  library.impl("devices", TORCH_BOX(&devices));
}

}  // namespace twiddle
