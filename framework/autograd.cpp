#include "framework/autograd.h"

#include <map>

#include "framework/context.h"
#include "framework/error.h"
#include "framework/tensor_ops.h"

namespace twiddle {

struct Variable::State {
  Tensor value, grad, grad_buffer;
  bool needs_grad = false;
};

Variable::Variable(Tensor value, bool needs_grad)
    : state_(std::make_shared<State>(State{std::move(value), {}, {}, needs_grad})) {}

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

void Variable::set_grad_buffer(Tensor buffer) const {
  state_->grad_buffer = std::move(buffer);
}

Tensor Variable::new_grad(Stream& stream) const {
  const bool is_free = state_->grad_buffer.defined() && !state_->grad.defined();
  return is_free ? state_->grad_buffer : Tensor(stream, state_->value.shape());
}

void Variable::drop_value() const {
  state_->value = {};
}

void Variable::add_grad(Context& ctx, Tensor grad) const {
  if (!state_->needs_grad) return;
  const Tensor& value = state_->value;  // undefined where it was dropped
  require(!value.defined() || grad.shape() == value.shape(), "a gradient ", to_string(grad.shape()), " for a value ",
          to_string(value.shape()));
  Tensor& buffer = state_->grad_buffer;
  if (!state_->grad.defined()) {
    const bool must_copy = buffer.defined() && buffer.version().storage != grad.version().storage;
    if (must_copy) ctx.stream->copy(buffer.write(), grad.read(), grad.bytes());
    state_->grad = must_copy ? buffer : std::move(grad);
    return;
  }
  // Out of place, except in its own buffer: the first gradient may be shared with another variable.
  Tensor sum = buffer.defined() ? buffer : Tensor(*ctx.stream, grad.shape(), grad.type());
  add(*ctx.stream, state_->grad, grad, sum);
  state_->grad = std::move(sum);
}

Variable Tape::record(std::string name, Tensor output, const std::vector<Variable>& inputs, Backward backward) {
  std::vector<Variable> differentiated;
  if (recording_)
    for (const Variable& input : inputs)
      if (input.needs_grad()) differentiated.push_back(input);
  Variable result(std::move(output), !differentiated.empty());
  if (!differentiated.empty())
    records_.push_back({std::move(name), result, std::move(differentiated), std::move(backward)});
  return result;
}

void Tape::backward(Context& ctx, const Variable& loss, Tensor factor) {
  require(loss.value().size() == 1, "backward starts from one number, not from ", to_string(loss.value().shape()));
  if (!factor.defined()) factor = Tensor::filled(*ctx.stream, loss.value().shape(), 1.0f);
  loss.add_grad(ctx, std::move(factor));
  if (hooks_ == nullptr) {
    while (!records_.empty()) run_newest(ctx);
    return;
  }
  std::map<const Tensor*, int> uses;  // of each variable, by the records that are left
  for (const Record& record : records_)
    for (const Variable& input : record.inputs) ++uses[&input.value()];
  while (!records_.empty()) {
    const std::vector<Variable> inputs = records_.back().inputs;
    run_newest(ctx);
    for (const Variable& input : inputs)
      if (--uses[&input.value()] == 0 && input.grad().defined()) hooks_->gradient_complete(input);
  }
}

void Tape::run_newest(Context& ctx) {
  // Taken off before it runs: what it holds is freed at the end of this turn, and an exception leaves no record that
  // ran by half.
  const Record record = std::move(records_.back());
  records_.pop_back();
  const Tensor grad = std::move(record.output.grad());
  if (!grad.defined()) return;  // the loss does not depend on it
  const ProfilerRange range(ctx.profiler, *ctx.stream, record.name, "backward");
  try {
    record.backward(ctx, grad);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(join("layer '", record.name, "', backward: ", error.what()));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(join("layer '", record.name, "', backward: out of memory on the host"));
  }
}

void Tape::clear() {
  while (!records_.empty()) records_.pop_back();
}

}  // namespace twiddle
