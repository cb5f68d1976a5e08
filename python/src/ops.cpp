// The operators, as PyTorch's stable interface for libraries has them: shapes, gradients and all that happens before
// numbers are there is in twiddle_torch/ops.py.
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "framework/error.h"
#include "framework/gpu_check.h"
#include "layers/conv/engines.h"
#include "python/src/convolutions.h"
#include "python/src/torch_memory.h"

namespace twiddle {

namespace {

using TorchTensor = torch::stable::Tensor;
using Pair = std::vector<std::int64_t>;

// What the three operators have in common behind their tensors.
struct Window {
  Pair stride, padding, dilation;
  std::int64_t groups;
};
struct Manner {
  std::string precision, engine;
  std::int64_t workspace_limit;
  bool deterministic;
};

int as_int(std::int64_t value, const char* what) {
  require(value >= 0 && value <= std::numeric_limits<int>::max(), what, " of ", value, " is impossible");
  return static_cast<int>(value);
}

// What is told is put together only where there is something to tell: a call takes microseconds in all.
void expect_shape(const char* what, const Shape& found, const Shape& wanted) {
  if (found != wanted) throw Error(join("a ", what, " of ", to_string(wanted), " is expected, got ", to_string(found)));
}

Precision precision_of(const std::string& name) {
  for (const Precision precision : {Precision::fp32, Precision::tf32})
    if (name == to_string(precision)) return precision;
  throw Error(ErrorKind::config, join("precision '", name, "' is none of: fp32, tf32"));
}

ConvProblem problem_of(const Shape& x, const Shape& weight, const Window& window, const Manner& manner) {
  if (x.size() != 4 || weight.size() != 4)
    throw Error(
        join("twiddle::conv2d takes tensors of four dimensions, got ", to_string(x), " and ", to_string(weight)));
  for (const Pair* pair : {&window.stride, &window.padding, &window.dilation})
    require(pair->size() == 2, "stride, padding and dilation are pairs of numbers");
  require(window.dilation[0] == window.dilation[1], "dilations that differ between rows and columns are not supported");
  ConvProblem problem;
  problem.batch = as_int(x[0], "a batch");
  problem.channels = as_int(x[1], "a number of channels");
  problem.height = as_int(x[2], "a height"), problem.width = as_int(x[3], "a width");
  problem.filters = as_int(weight[0], "a number of filters");
  problem.kernel_h = as_int(weight[2], "a kernel"), problem.kernel_w = as_int(weight[3], "a kernel");
  problem.stride_h = as_int(window.stride[0], "a stride"), problem.stride_w = as_int(window.stride[1], "a stride");
  problem.pad_h = as_int(window.padding[0], "a padding"), problem.pad_w = as_int(window.padding[1], "a padding");
  problem.dilation = as_int(window.dilation[0], "a dilation");
  problem.groups = as_int(window.groups, "a number of groups");
  problem.precision = precision_of(manner.precision);
  ConvProblem of_one_image = problem;  // a batch may be empty
  of_one_image.batch = 1;
  validate(of_one_image);
  expect_shape("weight", weight, problem.weight_shape());
  return problem;
}

void check_operands(const TorchTensor& first, const TorchTensor& second) {
  for (const TorchTensor* tensor : {&first, &second})
    require(tensor->scalar_type() == torch::headeronly::ScalarType::Float, "twiddle's operators take float32 alone");
  if (device_of(first) != device_of(second))
    throw Error(join("operands lie on ", to_string(device_of(first)), " and on ", to_string(device_of(second))));
}

// Work on a GPU goes to its own, whichever is current, and leaves that as it was.
class OnDevice {
 public:
  explicit OnDevice(Device device) {
    if (device.kind == Device::Kind::cuda) guard_.emplace(device.index);
  }

 private:
  std::optional<torch::stable::accelerator::DeviceGuard> guard_;
};

void run(const ConvProblem& problem, ConvPass pass, const Manner& manner, ConvOperands operands) {
  if (problem.batch == 0) return;
  require(manner.workspace_limit >= 0, "a workspace_limit of ", manner.workspace_limit, " bytes is impossible");
  const ConvWish wish{manner.engine, static_cast<std::size_t>(manner.workspace_limit), manner.deterministic};
  convolutions_of(operands.x.device()).run(problem, pass, wish, operands);
}

TorchTensor conv2d(const TorchTensor& x, const TorchTensor& weight, const std::optional<TorchTensor>& bias, Pair stride,
                   Pair padding, Pair dilation, std::int64_t groups, std::string precision,
                   std::int64_t workspace_limit, std::string engine, bool deterministic) {
  const Manner manner{std::move(precision), std::move(engine), workspace_limit, deterministic};
  ConvProblem problem = problem_of(shape_of(x), shape_of(weight),
                                   {std::move(stride), std::move(padding), std::move(dilation), groups}, manner);
  check_operands(x, weight);
  problem.bias = bias.has_value();
  if (bias) {
    check_operands(x, *bias);
    expect_shape("bias", shape_of(*bias), {problem.filters});
  }
  const OnDevice here(device_of(x));
  const TorchTensor y = new_torch_tensor(device_of(x), problem.output_shape());
  run(problem, ConvPass::forward, manner,
      {view_of(plain(x)), view_of(plain(weight)), view_of(y), bias ? view_of(plain(*bias)) : Tensor()});
  return y;
}

TorchTensor conv2d_backward_input(const TorchTensor& grad, const TorchTensor& weight, std::vector<std::int64_t> shape,
                                  Pair stride, Pair padding, Pair dilation, std::int64_t groups, std::string precision,
                                  std::int64_t workspace_limit, std::string engine, bool deterministic) {
  const Manner manner{std::move(precision), std::move(engine), workspace_limit, deterministic};
  const ConvProblem problem =
      problem_of(shape, shape_of(weight), {std::move(stride), std::move(padding), std::move(dilation), groups}, manner);
  check_operands(grad, weight);
  expect_shape("gradient", shape_of(grad), problem.output_shape());
  const OnDevice here(device_of(grad));
  const TorchTensor x = new_torch_tensor(device_of(grad), problem.input_shape());
  run(problem, ConvPass::backward_input, manner, {view_of(x), view_of(plain(weight)), view_of(plain(grad))});
  return x;
}

TorchTensor conv2d_backward_weight(const TorchTensor& grad, const TorchTensor& x, std::vector<std::int64_t> shape,
                                   Pair stride, Pair padding, Pair dilation, std::int64_t groups, std::string precision,
                                   std::int64_t workspace_limit, std::string engine, bool deterministic) {
  const Manner manner{std::move(precision), std::move(engine), workspace_limit, deterministic};
  const ConvProblem problem =
      problem_of(shape_of(x), shape, {std::move(stride), std::move(padding), std::move(dilation), groups}, manner);
  check_operands(grad, x);
  expect_shape("gradient", shape_of(grad), problem.output_shape());
  const OnDevice here(device_of(grad));
  TorchTensor weight = new_torch_tensor(device_of(grad), problem.weight_shape());
  if (problem.batch == 0) return torch::stable::zero_(weight);  // a sum of nothing
  run(problem, ConvPass::backward_weight, manner, {view_of(plain(x)), view_of(weight), view_of(plain(grad))});
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
