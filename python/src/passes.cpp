#include "python/src/passes.h"

#include <torch/csrc/stable/ops.h>

#include <limits>

#include "framework/error.h"
#include "framework/text.h"
#include "python/src/torch_memory.h"

namespace twiddle {

namespace {

using Sizes = torch::headeronly::IntHeaderOnlyArrayRef;

int as_int(std::int64_t value, const char* what) {
  require(value >= 0 && value <= std::numeric_limits<int>::max(), what, " of ", value, " is impossible");
  return static_cast<int>(value);
}

Precision precision_of(const std::string& name) {
  for (const Precision precision : {Precision::fp32, Precision::tf32})
    if (name == to_string(precision)) return precision;
  throw Error(ErrorKind::config, join("precision '", name, "' is not one of: fp32, tf32"));
}

// Formats the message only on error, because a call takes microseconds in total.
void expect_shape(const char* what, const Shape& found, const Shape& expected) {
  if (found != expected)
    throw Error(join("a ", what, " of ", to_string(expected), " is expected, got ", to_string(found)));
}

void check_operands(const TorchTensor& first, const TorchTensor& second) {
  for (const TorchTensor* tensor : {&first, &second})
    require(tensor->scalar_type() == torch::headeronly::ScalarType::Float, "twiddle's operators take float32 alone");
  if (device_of(first) != device_of(second))
    throw Error(join("operands lie on ", to_string(device_of(first)), " and on ", to_string(device_of(second))));
}

Convolutions::Known& look_up(Convolutions& convolutions, ConvCall call, Device device, Sizes x, Sizes weight,
                             NeededGradients needed, bool bias) {
  for (const Sizes& sizes : {x, weight})
    require(sizes.size() == 4, "twiddle's operators take tensors of four dimensions, not of ", sizes.size());
  ConvProblem& problem = call.problem;
  problem.batch = as_int(x[0], "a batch");
  problem.channels = as_int(x[1], "a number of channels");
  problem.height = as_int(x[2], "a height"), problem.width = as_int(x[3], "a width");
  problem.filters = as_int(weight[0], "a number of filters");
  problem.kernel_h = as_int(weight[2], "a kernel"), problem.kernel_w = as_int(weight[3], "a kernel");
  call.trains = needed.x || needed.weight;
  if (call.trains)  // the bias is not part of the problem: PyTorch sums its gradient
    problem.input_gradient = needed.x, problem.weight_gradient = needed.weight;
  else
    problem.bias = bias;
  if (device.kind == Device::Kind::cpu) call.threads = static_cast<int>(torch::stable::get_num_threads());
  Convolutions::Known& found = convolutions.known(call);
  expect_shape("weight", {weight.begin(), weight.end()}, problem.weight_shape());
  return found;
}

}  // namespace

ConvCall checked_arguments(const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& padding,
                           const std::vector<std::int64_t>& dilation, std::int64_t groups, const std::string& precision,
                           std::int64_t workspace_limit, std::string engine, bool deterministic) {
  for (const auto* pair : {&stride, &padding, &dilation})
    require(pair->size() == 2, "stride, padding and dilation are pairs of numbers");
  require(dilation[0] == dilation[1], "dilations that differ between rows and columns are not supported");
  require(workspace_limit >= 0, "a workspace_limit of ", workspace_limit, " bytes is impossible");
  ConvProblem window;
  window.stride_h = as_int(stride[0], "a stride"), window.stride_w = as_int(stride[1], "a stride");
  window.pad_h = as_int(padding[0], "a padding"), window.pad_w = as_int(padding[1], "a padding");
  window.dilation = as_int(dilation[0], "a dilation");
  window.groups = as_int(groups, "a number of groups");
  window.precision = precision_of(precision);
  return {window, std::move(engine), static_cast<std::size_t>(workspace_limit), deterministic};
}

std::pair<TorchTensor, std::int64_t> run_forward(const TorchTensor& x, const TorchTensor& weight,
                                                 const MaybeTensor& bias, const ConvCall& arguments,
                                                 NeededGradients needed) {
  check_operands(x, weight);
  const Device device = device_of(x);
  const auto guard = guard_for(device);
  Convolutions& convolutions = convolutions_of(device);
  Convolutions::Known& known =
      look_up(convolutions, arguments, device, x.sizes(), weight.sizes(), needed, bias.has_value());
  const ConvProblem& problem = known.call.problem;
  if (bias) {
    check_operands(x, *bias);
    expect_shape("bias", shape_of(*bias), {problem.filters});
  }
  TorchTensor y = new_torch_tensor(device, problem.output_shape());
  if (problem.batch == 0) return {std::move(y), 0};
  const TorchTensor plain_x = plain(x), plain_weight = plain(weight);
  const MaybeTensor plain_bias = plain(bias);
  ConvOperands operands{view_of(plain_x), view_of(plain_weight), view_of(y)};
  if (plain_bias) operands.bias = view_of(*plain_bias);
  return {std::move(y), convolutions.run_forward(known, std::move(operands))};
}

std::pair<MaybeTensor, MaybeTensor> run_backward(const TorchTensor& grad, const MaybeTensor& x,
                                                 const MaybeTensor& weight, const std::vector<std::int64_t>& shape,
                                                 const ConvCall& arguments, NeededGradients needed,
                                                 std::int64_t spectra) {
  for (const MaybeTensor* other : {&x, &weight})
    if (*other) check_operands(grad, **other);
  const Device device = device_of(grad);
  const auto guard = guard_for(device);
  Convolutions& convolutions = convolutions_of(device);
  Convolutions::Known& known = look_up(convolutions, arguments, device, x ? x->sizes() : Sizes(shape),
                                       weight ? weight->sizes() : Sizes(shape), needed, false);
  const ConvProblem& problem = known.call.problem;
  expect_shape("gradient", shape_of(grad), problem.output_shape());
  MaybeTensor of_x, of_weight;
  if (weight) of_x = new_torch_tensor(device, problem.input_shape());
  if (x) of_weight = new_torch_tensor(device, problem.weight_shape());
  if (problem.batch == 0) {
    if (of_weight) torch::stable::zero_(*of_weight);  // an empty sum
    return {of_x, of_weight};
  }
  const TorchTensor plain_grad = plain(grad);
  const MaybeTensor plain_x = plain(x), plain_weight = plain(weight);
  std::vector<Convolutions::Work> work;
  {
    // one tensor for both passes, which share its spectrum; freed with the last of them
    const Tensor y = view_of(plain_grad);
    if (weight) work.push_back({ConvPass::backward_input, {view_of(*of_x), view_of(*plain_weight), y}});
    if (x) work.push_back({ConvPass::backward_weight, {view_of(*plain_x), view_of(*of_weight), y}});
  }
  convolutions.run_backward(known, std::move(work), spectra);
  return {of_x, of_weight};
}

}  // namespace twiddle
