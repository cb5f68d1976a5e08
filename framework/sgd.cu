#include "framework/sgd.h"

#include "framework/text.h"
#include "framework/update_parameters.h"

namespace twiddle {

namespace {

struct PlainRule {
  static constexpr int states = 0, divisors = 0;
  float rate, decay, momentum;
  TWIDDLE_HD PlainRule at(float step_rate) const { return {step_rate * rate, decay, momentum}; }
  TWIDDLE_HD void operator()(float grad, float& weight, float*) const { weight -= rate * (grad + decay * weight); }
};

struct MomentumRule {
  static constexpr int states = 1, divisors = 0;
  float rate, decay, momentum;
  TWIDDLE_HD MomentumRule at(float step_rate) const { return {step_rate * rate, decay, momentum}; }
  TWIDDLE_HD void operator()(float grad, float& weight, float* velocity) const {
    *velocity = momentum * *velocity + grad + decay * weight;
    weight -= rate * *velocity;
  }
};

struct NesterovRule {
  static constexpr int states = 1, divisors = 0;
  float rate, decay, momentum;
  TWIDDLE_HD NesterovRule at(float step_rate) const { return {step_rate * rate, decay, momentum}; }
  TWIDDLE_HD void operator()(float grad, float& weight, float* velocity) const {
    const float g = grad + decay * weight;
    *velocity = momentum * *velocity + g;
    weight -= rate * (g + momentum * *velocity);
  }
};

}  // namespace

Sgd::Sgd(Params& params)
    : momentum_(params.number("momentum", 0.0, 0, 1)),
      weight_decay_(params.number("weight_decay", 0.0, 0, 1e3)),
      nesterov_(params.flag("nesterov", false)) {
  if (nesterov_ && momentum_ == 0) params.error("nesterov", "nesterov needs a momentum above 0");
}

std::string Sgd::describe() const {
  return join("sgd", momentum_ > 0 ? " momentum " + format_number(momentum_) : "", nesterov_ ? " (Nesterov)" : "",
              weight_decay_ > 0 ? ", weight decay " + format_number(weight_decay_) : "");
}

void Sgd::step(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers) {
  if (momentum_ == 0) return step_by<PlainRule>(ctx, parameters, numbers);
  return nesterov_ ? step_by<NesterovRule>(ctx, parameters, numbers) : step_by<MomentumRule>(ctx, parameters, numbers);
}

template <class Rule>
void Sgd::step_by(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers) {
  std::vector<Update<Rule>> updates;
  for (Parameter* parameter : parameters) {
    const Tensor& grad = parameter->variable.grad();
    if (!parameter->trainable || !grad.defined()) continue;
    Tensor& weight = parameter->variable.value();
    const Rule rule{parameter->learning_rate, static_cast<float>(parameter->weight_decay ? weight_decay_ : 0),
                    static_cast<float>(momentum_)};
    Update<Rule> update{rule, weight.size(), grad.read(), weight.write(), {}};
    if (Rule::states > 0) update.state[0] = state_of(*ctx.stream, "momentum", *parameter).write();
    updates.push_back(update);
  }
  update_parameters(*ctx.stream, updates, numbers);
}

}  // namespace twiddle
