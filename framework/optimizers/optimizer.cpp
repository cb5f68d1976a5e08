#include "framework/optimizers/optimizer.h"

#include "framework/context.h"
#include "framework/error.h"
#include "framework/parameter.h"
#include "framework/ranks/communicator.h"
#include "framework/tensor_ops.h"

namespace twiddle {

Tensor& OptimizerState::at(Stream& stream, const std::string& name, const Shape& shape) {
  Tensor& tensor = tensors_[name];
  if (!tensor.defined()) tensor = Tensor::filled(stream, shape, 0);
  require(tensor.shape() == shape, "optimizer state '", name, "' is ", to_string(tensor.shape()), ", its parameter ",
          to_string(shape));
  return tensor;
}

std::vector<std::pair<std::string, Tensor>> OptimizerState::list() const {
  return {tensors_.begin(), tensors_.end()};
}

void OptimizerState::restore(const std::vector<std::pair<std::string, Tensor>>& state) {
  tensors_.clear();
  tensors_.insert(state.begin(), state.end());
}

void Optimizer::prepare(Stream& stream, const std::vector<Parameter*>& parameters) {
  for (const Parameter* parameter : parameters)
    if (parameter->trainable)
      for (const std::string& name : state_names()) state_of(stream, name, *parameter);
}

Tensor& Optimizer::state_of(Stream& stream, const std::string& name, const Parameter& parameter) {
  return state_.at(stream, name + "." + parameter.name, parameter.shape);
}

namespace {

Tensor norm_of_all(Stream& stream, const Tensor& norm, Communicator& ranks) {
  Tensor norms = Tensor::filled(stream, {ranks.size()}, 0);
  stream.copy(norms.write() + ranks.rank(), norm.read(), norm.bytes());
  ranks.all_reduce(stream, norms.write(), norms.size());
  return l2_norm(stream, {norms});
}

}  // namespace

Tensor gradient_norm(Stream& stream, const std::vector<Parameter*>& parameters, Communicator* ranks) {
  std::vector<Tensor> gradients;
  for (const Parameter* parameter : parameters)
    if (parameter->variable.grad().defined()) gradients.push_back(parameter->variable.grad());
  const Tensor norm = l2_norm(stream, gradients);
  return ranks == nullptr ? norm : norm_of_all(stream, norm, *ranks);
}

}  // namespace twiddle
