#include "framework/optimizer.h"

#include <cmath>

#include "framework/adam.h"
#include "framework/error.h"
#include "framework/sgd.h"
#include "framework/tensor_ops.h"

namespace twiddle {

OptimizerRegistry builtin_optimizers() {
  OptimizerRegistry optimizers("optimizer");
  optimizers.add<Sgd>("sgd");
  optimizers.add<Adam>("adam");
  optimizers.add<AdamW>("adamw");
  return optimizers;
}

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

double clip_gradients(Context& ctx, std::vector<Parameter*>& parameters, double limit) {
  std::vector<Tensor> grads;
  for (const Parameter* parameter : parameters)
    if (parameter->variable.grad().defined()) grads.push_back(parameter->variable.grad());
  const double norm = std::sqrt(sum_of_squares(*ctx.stream, grads));
  if (norm <= limit || !std::isfinite(norm)) return norm;
  for (Tensor& grad : grads) scale(*ctx.stream, static_cast<float>(limit / norm), grad);
  return norm;
}

}  // namespace twiddle
