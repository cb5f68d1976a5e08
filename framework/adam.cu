#include <cmath>

#include "framework/adam.h"
#include "framework/for_each.h"
#include "framework/text.h"

namespace twiddle {

namespace {

struct AdamUpdate {
  float rate, beta1, beta2, epsilon, joined_decay,
      kept_weight;         // kept_weight: 1 - rate x decay where decay is decoupled
  float root_correction2;  // sqrt(1 - beta2^t)
  const float* grad;
  float *mean, *square, *weight;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const float g = grad[i] + joined_decay * weight[i];
    const float m = beta1 * mean[i] + (1 - beta1) * g;
    const float v = beta2 * square[i] + (1 - beta2) * g * g;
    mean[i] = m;
    square[i] = v;
    weight[i] = kept_weight * weight[i] - rate * m / (sqrtf(v) / root_correction2 + epsilon);
  }
};

}  // namespace

Adam::Adam(Params& params, bool decoupled, double default_decay)
    : beta1_(params.number("beta1", 0.9, 0, 0.999999)),
      beta2_(params.number("beta2", 0.999, 0, 0.999999)),
      epsilon_(params.number("epsilon", 1e-8, 1e-20, 1)),
      weight_decay_(params.number("weight_decay", default_decay, 0, 1e3)),
      decoupled_(decoupled) {}

std::string Adam::describe() const {
  return join(kind(), " beta ", format_number(beta1_), ", ", format_number(beta2_),
              weight_decay_ > 0 ? ", weight decay " + format_number(weight_decay_) : "");
}

void Adam::step(Context& ctx, std::vector<Parameter*>& parameters, double rate) {
  Stream& stream = *ctx.stream;
  for (Parameter* parameter : parameters) {
    const Tensor& grad = parameter->variable.grad();
    if (!parameter->trainable || !grad.defined()) continue;
    Tensor& weight = parameter->variable.value();
    Tensor& mean = state_.at(stream, "mean." + parameter->name, weight.shape());
    Tensor& square = state_.at(stream, "square." + parameter->name, weight.shape());
    // Steps are counted per parameter, so that one without a gradient for a while is corrected rightly. Exact up to
    // 2^24 steps.
    Tensor& steps = state_.at(stream, "steps." + parameter->name, {1});
    const double t = steps.to_vector(stream)[0] + 1;
    stream.fill(steps.write(), 1, static_cast<float>(t));

    const double own_rate = rate * parameter->learning_rate;
    const double decay = parameter->weight_decay ? weight_decay_ : 0;
    for_each_index(
        stream, weight.size(),
        AdamUpdate{static_cast<float>(own_rate / (1 - std::pow(beta1_, t))), static_cast<float>(beta1_),
                   static_cast<float>(beta2_), static_cast<float>(epsilon_), static_cast<float>(decoupled_ ? 0 : decay),
                   static_cast<float>(decoupled_ ? 1 - own_rate * decay : 1),
                   static_cast<float>(std::sqrt(1 - std::pow(beta2_, t))), grad.read(), mean.write(), square.write(),
                   weight.write()});
  }
}

}  // namespace twiddle
