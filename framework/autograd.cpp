#include "framework/autograd.h"

#include "framework/context.h"
#include "framework/error.h"
#include "framework/tensor_ops.h"

namespace twiddle {

struct Variable::State {
  Tensor value, grad, place;
  bool needs_grad = false;
  std::shared_ptr<void> uses = {};  // shared by all of them
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

void Variable::set_grad_place(Tensor place) const {
  state_->place = std::move(place);
}
std::shared_ptr<void> Variable::begin_use() const {
  if (!state_->uses) state_->uses = std::make_shared<char>();
  return state_->uses;
}
bool Variable::is_in_use() const {
  return state_->uses.use_count() > 1;
}

Tensor Variable::new_grad(Stream& stream) const {
  const bool is_free = state_->place.defined() && !state_->grad.defined();
  return is_free ? state_->place : Tensor(stream, state_->value.shape());
}

void Variable::drop_value() const {
  state_->value = {};
}

void Variable::add_grad(Context& ctx, Tensor grad) const {
  if (!state_->needs_grad) return;
  const Tensor& value = state_->value;  // undefined where it was dropped
  require(!value.defined() || grad.shape() == value.shape(), "a gradient ", to_string(grad.shape()), " for a value ",
          to_string(value.shape()));
  Tensor& place = state_->place;
  if (!state_->grad.defined()) {
    const bool lies_elsewhere = place.defined() && place.version().storage != grad.version().storage;
    if (lies_elsewhere) ctx.stream->copy(place.write(), grad.read(), grad.bytes());
    state_->grad = lies_elsewhere ? place : std::move(grad);
    return;
  }
  // Out of place, unless the place is its own: the first gradient may be shared with another variable.
  Tensor sum = place.defined() ? place : Tensor(*ctx.stream, grad.shape());
  add(*ctx.stream, state_->grad, grad, sum);
  state_->grad = std::move(sum);
}

Variable Tape::record(std::string name, Tensor output, const std::vector<Variable>& inputs, Backward backward) {
  std::vector<std::shared_ptr<void>> uses;
  if (recording_)
    for (const Variable& input : inputs)
      if (input.needs_grad()) uses.push_back(input.begin_use());
  Variable result(std::move(output), !uses.empty());
  if (!uses.empty()) records_.push_back({std::move(name), result, std::move(uses), std::move(backward)});
  return result;
}

void Tape::backward(Context& ctx, const Variable& loss, Tensor factor, const std::function<void()>& behind_each) {
  require(loss.value().size() == 1, "backward starts from one number, not from ", to_string(loss.value().shape()));
  if (!factor.defined()) factor = Tensor::filled(*ctx.stream, loss.value().shape(), 1.0f);
  loss.add_grad(ctx, std::move(factor));
  while (!records_.empty())
    if (run_newest(ctx) && behind_each) behind_each();
}

bool Tape::run_newest(Context& ctx) {
  // Taken off before it runs: what it holds is freed at the end of this turn, and an exception leaves no record that
  // ran by half.
  const Record record = std::move(records_.back());
  records_.pop_back();
  const Tensor grad = std::move(record.output.grad());
  if (!grad.defined()) return false;
  const ProfilerRange range(ctx.profiler, *ctx.stream, record.name, "backward");
  try {
    record.backward(ctx, grad);
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(join("layer '", record.name, "', backward: ", error.what()));
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(join("layer '", record.name, "', backward: out of memory on the host"));
  }
  return true;
}

void Tape::clear() {
  while (!records_.empty()) records_.pop_back();
}

}  // namespace twiddle
