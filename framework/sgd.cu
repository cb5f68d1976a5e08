#include "framework/for_each.h"
#include "framework/sgd.h"
#include "framework/text.h"

namespace twiddle {

namespace {

struct PlainUpdate {
  float rate, decay;
  const float* grad;
  float* weight;
  TWIDDLE_HD void operator()(std::int64_t i) const { weight[i] -= rate * (grad[i] + decay * weight[i]); }
};

struct MomentumUpdate {
  float rate, decay, momentum;
  const float* grad;
  float *velocity, *weight;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const float v = momentum * velocity[i] + grad[i] + decay * weight[i];
    velocity[i] = v;
    weight[i] -= rate * v;
  }
};

struct NesterovUpdate {
  float rate, decay, momentum;
  const float* grad;
  float *velocity, *weight;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const float g = grad[i] + decay * weight[i];
    const float v = momentum * velocity[i] + g;
    velocity[i] = v;
    weight[i] -= rate * (g + momentum * v);
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

void Sgd::step(Context& ctx, std::vector<Parameter*>& parameters, double rate) {
  Stream& stream = *ctx.stream;
  for (Parameter* parameter : parameters) {
    const Tensor& grad = parameter->variable.grad();
    if (!parameter->trainable || !grad.defined()) continue;
    Tensor& weight = parameter->variable.value();
    const auto own_rate = static_cast<float>(rate * parameter->learning_rate);
    const auto decay = static_cast<float>(parameter->weight_decay ? weight_decay_ : 0);
    const auto momentum = static_cast<float>(momentum_);
    if (momentum_ == 0) {
      for_each_index(stream, weight.size(), PlainUpdate{own_rate, decay, grad.read(), weight.write()});
      continue;
    }
    Tensor& velocity = state_.at(stream, "momentum." + parameter->name, weight.shape());
    if (nesterov_)
      for_each_index(stream, weight.size(),
                     NesterovUpdate{own_rate, decay, momentum, grad.read(), velocity.write(), weight.write()});
    else
      for_each_index(stream, weight.size(),
                     MomentumUpdate{own_rate, decay, momentum, grad.read(), velocity.write(), weight.write()});
  }
}

}  // namespace twiddle
