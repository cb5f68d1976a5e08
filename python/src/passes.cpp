#include "python/src/passes.h"

#include <torch/csrc/stable/ops.h>

#include <array>

#include "framework/error.h"
#include "python/src/arguments.h"
#include "python/src/convolutions.h"
#include "python/src/torch_memory.h"

namespace twiddle {

namespace {

template <class Sizes>
std::array<std::int64_t, 4> four(const Sizes& sizes) {
  require(sizes.size() == 4, "twiddle's operators take tensors of four dimensions, not of ", sizes.size());
  return {sizes[0], sizes[1], sizes[2], sizes[3]};
}

Convolutions::Known& known(Convolutions& convolutions, const ConvCall& call) {
  if (Convolutions::Known* const found = convolutions.find(call)) return *found;
  const ConvArguments& arguments = arguments_of(call.arguments);
  const ConvProblem problem =
      problem_of({call.x.begin(), call.x.end()}, {call.weight.begin(), call.weight.end()}, call.bias, arguments);
  return convolutions.remember(call, problem, options_of(arguments));
}

// Returns how many PyTorch would use on a CPU in this thread.
int threads_on(Device device) {
  return device.kind == Device::Kind::cpu ? static_cast<int>(torch::stable::get_num_threads()) : 0;
}

// The id of spectra tells the device in its last digits, and in the others their number there.
constexpr std::int64_t most_devices = 256;

std::int64_t id_on(Device device, std::int64_t number) {
  const bool on_cpu = device.kind == Device::Kind::cpu;
  return number == 0 ? 0 : number * most_devices + (on_cpu ? most_devices - 1 : device.index);
}

Device device_of_spectra(std::int64_t id) {
  const auto last = static_cast<int>(id % most_devices);
  return last == most_devices - 1 ? Device{} : Device{Device::Kind::cuda, last};
}

}  // namespace

// In training the bias is no part of the problem: its gradient is a sum of PyTorch's.
std::pair<TorchTensor, std::int64_t> run_forward(const TorchTensor& x, const TorchTensor& weight,
                                                 const MaybeTensor& bias, std::int64_t arguments,
                                                 NeededGradients needed) {
  const bool trains = needed.x || needed.weight;
  check_operands(x, weight);
  const Device device = device_of(x);
  const OnDevice on_device(device);
  Convolutions& convolutions = convolutions_of(device);
  Convolutions::Known& call = known(convolutions, {four(x.sizes()), four(weight.sizes()), arguments, threads_on(device),
                                                   bias.has_value() && !trains, needed.x, needed.weight});
  if (bias) {
    check_operands(x, *bias);
    expect_shape("bias", shape_of(*bias), {call.weight[0]});
  }
  TorchTensor y = new_torch_tensor(device, call.y);
  if (call.problem.batch == 0) return {std::move(y), 0};
  const TorchTensor plain_x = plain(x), plain_weight = plain(weight);
  const MaybeTensor plain_bias = bias ? MaybeTensor(plain(*bias)) : std::nullopt;
  ConvOperands operands{view_of(plain_x), view_of(plain_weight), view_of(y)};
  if (plain_bias) operands.bias = view_of(*plain_bias);
  if (trains) return {std::move(y), id_on(device, convolutions.run_forward(call, std::move(operands)))};
  convolutions.run(call, {{ConvPass::forward, std::move(operands)}});
  return {std::move(y), 0};
}

std::pair<MaybeTensor, MaybeTensor> run_backward(const TorchTensor& grad, const MaybeTensor& x,
                                                 const MaybeTensor& weight, const std::vector<std::int64_t>& shape,
                                                 std::int64_t arguments, NeededGradients needed, std::int64_t spectra) {
  for (const MaybeTensor* other : {&x, &weight})
    if (*other) check_operands(grad, **other);
  const Device device = device_of(grad);
  const OnDevice on_device(device);
  Convolutions& convolutions = convolutions_of(device);
  Convolutions::Known& call =
      known(convolutions, {x ? four(x->sizes()) : four(shape), weight ? four(weight->sizes()) : four(shape), arguments,
                           threads_on(device), false, needed.x, needed.weight});
  expect_shape("gradient", shape_of(grad), call.y);
  MaybeTensor of_x, of_weight;
  if (weight) of_x = new_torch_tensor(device, call.x);
  if (x) of_weight = new_torch_tensor(device, call.weight);
  if (call.problem.batch == 0) {
    if (of_weight) torch::stable::zero_(*of_weight);  // a sum of nothing
    return {of_x, of_weight};
  }
  const TorchTensor plain_grad = plain(grad);
  const MaybeTensor plain_x = x ? MaybeTensor(plain(*x)) : std::nullopt;
  const MaybeTensor plain_weight = weight ? MaybeTensor(plain(*weight)) : std::nullopt;
  std::vector<Convolutions::Work> work;
  {
    const Tensor y = view_of(plain_grad);  // one for both, so that they share its spectrum, which goes with the last
    if (weight) work.push_back({ConvPass::backward_input, {view_of(*of_x), view_of(*plain_weight), y}});
    if (x) work.push_back({ConvPass::backward_weight, {view_of(*plain_x), view_of(*of_weight), y}});
  }
  convolutions.run(call, std::move(work), spectra / most_devices);
  return {of_x, of_weight};
}

void release_spectra(std::int64_t id) {
  convolutions_of(device_of_spectra(id)).release(id / most_devices);
}

}  // namespace twiddle
