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

TorchTensor conv2d(const TorchTensor& x, const TorchTensor& weight, const MaybeTensor& bias, std::int64_t manner) {
  const Device device = device_of(x);
  check_operands(x, weight);
  Convolutions& here = convolutions_of(device);
  Convolutions::Known& problem = known(here, {four(x.sizes()), four(weight.sizes()), manner, bias.has_value()});
  if (bias) {
    check_operands(x, *bias);
    expect_shape("bias", shape_of(*bias), {problem.weight[0]});
  }
  const OnDevice on_device(device);
  const TorchTensor y = new_torch_tensor(device, problem.y), plain_x = plain(x), plain_weight = plain(weight);
  const MaybeTensor plain_bias = bias ? MaybeTensor(plain(*bias)) : std::nullopt;
  ConvOperands operands{view_of(plain_x), view_of(plain_weight), view_of(y)};
  if (plain_bias) operands.bias = view_of(*plain_bias);
  if (problem.problem.batch > 0) here.run(problem, ConvPass::forward, operands);
  return y;
}

// Both gradients: of x where there is a weight, and of the weight where there is an x. Of what is not there `shape`
// tells the shape.
std::tuple<MaybeTensor, MaybeTensor> conv2d_backward(const TorchTensor& grad, const MaybeTensor& x,
                                                     const MaybeTensor& weight, std::vector<std::int64_t> shape,
                                                     std::int64_t manner) {
  const Device device = device_of(grad);
  for (const MaybeTensor* other : {&x, &weight})
    if (*other) check_operands(grad, **other);
  Convolutions& here = convolutions_of(device);
  Convolutions::Known& problem =
      known(here, {x ? four(x->sizes()) : four(shape), weight ? four(weight->sizes()) : four(shape), manner, false});
  expect_shape("gradient", shape_of(grad), problem.y);
  const OnDevice on_device(device);
  MaybeTensor of_x, of_weight;
  if (weight) of_x = new_torch_tensor(device, problem.x);
  if (x) of_weight = new_torch_tensor(device, problem.weight);
  if (problem.problem.batch == 0) {
    if (of_weight) torch::stable::zero_(*of_weight);  // a sum of nothing
    return {of_x, of_weight};
  }
  const TorchTensor plain_grad = plain(grad);
  const Tensor y = view_of(plain_grad);
  if (weight) {
    const TorchTensor plain_weight = plain(*weight);
    ConvOperands operands{view_of(*of_x), view_of(plain_weight), y};
    here.run(problem, ConvPass::backward_input, operands);
  }
  if (x) {
    const TorchTensor plain_x = plain(*x);
    ConvOperands operands{view_of(plain_x), view_of(*of_weight), y};
    here.run(problem, ConvPass::backward_weight, operands);
  }
  return {of_x, of_weight};
}

}  // namespace

STABLE_TORCH_LIBRARY_FRAGMENT(twiddle, library) {
  library.def(
      "_manner(int[] stride, int[] padding, int[] dilation, int groups, str precision, int workspace_limit, "
      "str engine, bool deterministic) -> int");
  library.def("_conv2d(Tensor x, Tensor weight, Tensor? bias, int manner) -> Tensor");
  library.def(
      "_conv2d_backward(Tensor grad, Tensor? x, Tensor? weight, int[] shape, int manner) -> (Tensor?, Tensor?)");
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CPU, library) {
  library.impl("_conv2d", TORCH_BOX(&conv2d));
  library.impl("_conv2d_backward", TORCH_BOX(&conv2d_backward));
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CUDA, library) {
  library.impl("_conv2d", TORCH_BOX(&conv2d));
  library.impl("_conv2d_backward", TORCH_BOX(&conv2d_backward));
}

STABLE_TORCH_LIBRARY_IMPL(twiddle, CompositeExplicitAutograd, library) {
  library.impl("_manner", TORCH_BOX(&manner));
}

}  // namespace twiddle
