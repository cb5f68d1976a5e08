// The same operators on a shorter way, for who calls them one by one: what was said once about a convolution is known
// by a number, and what was found out about a problem is looked up. A number means something in this process alone, so
// these are for twiddle_torch/ops.py, and never part of a graph that outlives it.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/error.h"
#include "python/src/convolutions.h"
#include "python/src/manner.h"
#include "python/src/torch_memory.h"

namespace twiddle {

namespace {

using TorchTensor = torch::stable::Tensor;
using MaybeTensor = std::optional<TorchTensor>;

class Manners {
 public:
  std::int64_t add(Manner manner) {
    const std::lock_guard lock(mutex_);
    all_.push_back(std::move(manner));
    return static_cast<std::int64_t>(all_.size()) - 1;
  }
  Manner of(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    require(number >= 0 && number < static_cast<std::int64_t>(all_.size()), "no manner has the number ", number);
    return all_[static_cast<std::size_t>(number)];
  }

 private:
  std::mutex mutex_;
  std::vector<Manner> all_;
};
Manners& manners() {
  static auto& all = *new Manners;
  return all;
}

std::int64_t manner(std::vector<std::int64_t> stride, std::vector<std::int64_t> padding,
                    std::vector<std::int64_t> dilation, std::int64_t groups, std::string precision,
                    std::int64_t workspace_limit, std::string engine, bool deterministic) {
  return manners().add({std::move(stride), std::move(padding), std::move(dilation), groups, std::move(precision),
                        workspace_limit, std::move(engine), deterministic});
}

template <class Sizes>
std::array<std::int64_t, 4> four(const Sizes& sizes) {
  require(sizes.size() == 4, "tensors of four dimensions are expected");
  return {sizes[0], sizes[1], sizes[2], sizes[3]};
}

Convolutions::Known& known(Convolutions& here, const ConvCall& call) {
  if (Convolutions::Known* const found = here.find(call)) return *found;
  const Manner manner = manners().of(call.manner);
  const ConvProblem problem =
      problem_of({call.x.begin(), call.x.end()}, {call.weight.begin(), call.weight.end()}, call.bias, manner);
  return here.remember(call, problem, wish_of(manner));
}

// The result, and under which number its spectra are kept. In training the bias is no part of the problem: its gradient
// is a sum of PyTorch's.
std::pair<TorchTensor, std::int64_t> forward(const TorchTensor& x, const TorchTensor& weight, const MaybeTensor& bias,
                                             std::int64_t manner, bool needs_x, bool needs_weight) {
  const Device device = device_of(x);
  const bool trains = needs_x || needs_weight;
  check_operands(x, weight);
  Convolutions& here = convolutions_of(device);
  Convolutions::Known& about =
      known(here, {four(x.sizes()), four(weight.sizes()), manner, bias.has_value() && !trains, needs_x, needs_weight});
  if (bias) {
    check_operands(x, *bias);
    expect_shape("bias", shape_of(*bias), {about.weight[0]});
  }
  const OnDevice on_device(device);
  TorchTensor y = new_torch_tensor(device, about.y);
  if (about.problem.batch == 0) return {std::move(y), 0};
  const TorchTensor plain_x = plain(x), plain_weight = plain(weight);
  const MaybeTensor plain_bias = bias ? MaybeTensor(plain(*bias)) : std::nullopt;
  ConvOperands operands{view_of(plain_x), view_of(plain_weight), view_of(y)};
  if (plain_bias) operands.bias = view_of(*plain_bias);
  if (trains) return {std::move(y), here.run_forward(about, operands)};
  here.run(about, ConvPass::forward, operands);
  return {std::move(y), 0};
}

TorchTensor conv2d(const TorchTensor& x, const TorchTensor& weight, const MaybeTensor& bias, std::int64_t manner) {
  return forward(x, weight, bias, manner, false, false).first;
}

// What is kept on a device has a number there; for Python it has one in the process, of which the last digits tell
// which device it is.
constexpr std::int64_t most_devices = 256;

std::tuple<TorchTensor, std::int64_t> conv2d_recorded(const TorchTensor& x, const TorchTensor& weight,
                                                      const MaybeTensor& bias, std::int64_t manner, bool needs_x,
                                                      bool needs_weight) {
  auto [y, kept] = forward(x, weight, bias, manner, needs_x, needs_weight);
  const Device device = device_of(x);
  const std::int64_t last = device.kind == Device::Kind::cpu ? most_devices - 1 : device.index;
  return {std::move(y), kept == 0 ? 0 : kept * most_devices + last};
}

void release(std::int64_t kept) {
  const auto last = static_cast<int>(kept % most_devices);
  convolutions_of(last == most_devices - 1 ? Device{} : Device{Device::Kind::cuda, last}).release(kept / most_devices);
}

// Both gradients: of x where there is a weight, and of the weight where there is an x. Of what is not there `shape`
// tells the shape.
std::tuple<MaybeTensor, MaybeTensor> conv2d_backward(const TorchTensor& grad, const MaybeTensor& x,
                                                     const MaybeTensor& weight, std::vector<std::int64_t> shape,
                                                     std::int64_t manner, std::int64_t kept) {
  const Device device = device_of(grad);
  for (const MaybeTensor* other : {&x, &weight})
    if (*other) check_operands(grad, **other);
  Convolutions& here = convolutions_of(device);
  Convolutions::Known& about =
      known(here, {x ? four(x->sizes()) : four(shape), weight ? four(weight->sizes()) : four(shape), manner, false,
                   weight.has_value(), x.has_value()});
  expect_shape("gradient", shape_of(grad), about.y);
  const OnDevice on_device(device);
  MaybeTensor of_x, of_weight;
  if (weight) of_x = new_torch_tensor(device, about.x);
  if (x) of_weight = new_torch_tensor(device, about.weight);
  if (about.problem.batch == 0) {
    if (of_weight) torch::stable::zero_(*of_weight);  // a sum of nothing
    return {of_x, of_weight};
  }
  const TorchTensor plain_grad = plain(grad);
  const Tensor y = view_of(plain_grad);  // one for both, so that they share its spectrum
  const auto run = [&](ConvPass pass, const TorchTensor& x_or_gradient, const TorchTensor& weight_or_gradient) {
    ConvOperands operands{view_of(x_or_gradient), view_of(weight_or_gradient), y};
    if (kept != 0) here.recall(kept / most_devices, operands);
    here.run(about, pass, operands);
  };
  if (weight) run(ConvPass::backward_input, *of_x, plain(*weight));
  if (x) run(ConvPass::backward_weight, plain(*x), *of_weight);
  return {of_x, of_weight};
}

std::int64_t kept() {
  return all_kept();
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(twiddle, library) {
  library.def(
      "_manner(int[] stride, int[] padding, int[] dilation, int groups, str precision, int workspace_limit, "
      "str engine, bool deterministic) -> int");
  library.def("_conv2d(Tensor x, Tensor weight, Tensor? bias, int manner) -> Tensor");
  library.def(
      "_conv2d_recorded(Tensor x, Tensor weight, Tensor? bias, int manner, bool needs_x, bool needs_weight) "
      "-> (Tensor, int)");
  library.def(
      "_conv2d_backward(Tensor grad, Tensor? x, Tensor? weight, int[] shape, int manner, int kept) "
      "-> (Tensor?, Tensor?)");
  library.def("_release(int kept) -> ()");
  library.def("_kept() -> int");
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CPU, library) {
  library.impl("_conv2d", TORCH_BOX(&conv2d));
  library.impl("_conv2d_recorded", TORCH_BOX(&conv2d_recorded));
  library.impl("_conv2d_backward", TORCH_BOX(&conv2d_backward));
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CUDA, library) {
  library.impl("_conv2d", TORCH_BOX(&conv2d));
  library.impl("_conv2d_recorded", TORCH_BOX(&conv2d_recorded));
  library.impl("_conv2d_backward", TORCH_BOX(&conv2d_backward));
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CompositeExplicitAutograd, library) {
  library.impl("_manner", TORCH_BOX(&manner));
  library.impl("_release", TORCH_BOX(&release));
  library.impl("_kept", TORCH_BOX(&kept));
}

}  // namespace twiddle
