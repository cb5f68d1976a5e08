#include "framework/autograd.h"

#include "framework/context.h"
#include "framework/error.h"
#include "framework/tensor_ops.h"

namespace twiddle {

struct Variable::State {
  Tensor value, grad;
  bool needs_grad = false;
};

Variable::Variable(Tensor value, bool needs_grad)
    : state_(std::make_shared<State>(State{std::move(value), {}, needs_grad})) {}

Tensor& Variable::value() const {
  return state_->value;
}
Tensor& Variable::grad() const {
  return state_->grad;
}
bool Variable::needs_grad() const {
  return state_->needs_grad;
}
void Variable::clear_grad() const {
  state_->grad = {};
}

void Variable::drop_value() const {
  state_->value = {};
}

void Variable::add_grad(Context& ctx, Tensor grad) const {
  if (!state_->needs_grad) return;
  const Tensor& value = state_->value;  // undefined where it was dropped
  require(!value.defined() || grad.shape() == value.shape(), "a gradient ", to_string(grad.shape()), " for a value ",
          to_string(value.shape()));
  if (!state_->grad.defined()) {
    state_->grad = std::move(grad);
    return;
  }
  // Out of place: the first gradient may be shared with another variable.
  Tensor sum(*ctx.stream, grad.shape());
  add(*ctx.stream, state_->grad, grad, sum);
  state_->grad = std::move(sum);
}

Variable Tape::record(std::string name, Tensor output, const std::vector<Variable>& inputs, Backward backward) {
  bool needs_grad = false;
  for (const Variable& input : inputs) needs_grad = needs_grad || input.needs_grad();
  needs_grad = needs_grad && recording_;
  Variable result(std::move(output), needs_grad);
  if (needs_grad) records_.push_back({std::move(name), result, std::move(backward)});
  return result;
}

void Tape::backward(Context& ctx, const Variable& loss) {
  require(loss.value().size() == 1, "backward starts from one number, not from ", to_string(loss.value().shape()));
  loss.add_grad(ctx, Tensor::filled(*ctx.stream, loss.value().shape(), 1.0f));
  while (!records_.empty()) {
    // Taken off before it runs: what it holds is freed at the end of this turn, and an exception leaves no
    // record that ran by half.
    const Record record = std::move(records_.back());
    records_.pop_back();
    const Tensor grad = std::move(record.output.grad());
    if (!grad.defined()) continue;  // the loss does not depend on it
    const ProfilerRange range(ctx.profiler, *ctx.stream, record.name, "backward");
    try {
      record.backward(ctx, grad);
    } catch (const OutOfMemory& error) {
      throw OutOfMemory(join("layer '", record.name, "', backward: ", error.what()));
    }
  }
}

void Tape::clear() {
  while (!records_.empty()) records_.pop_back();
}

}  // namespace twiddle
