#include "framework/adam.h"

#include <cmath>

#include "framework/text.h"
#include "framework/update_parameters.h"

namespace twiddle {

namespace {

struct AdamRule {
  static constexpr int states = 2;
  float rate, beta1, beta2, epsilon, joined_decay,
      kept_weight;         // kept_weight: 1 - rate x decay where decay is decoupled
  float root_correction2;  // sqrt(1 - beta2^t)
  TWIDDLE_HD void operator()(float grad, float& weight, float* state) const {
    const float g = grad + joined_decay * weight;
    float &mean = state[0], &square = state[1];
    mean = beta1 * mean + (1 - beta1) * g;
    square = beta2 * square + (1 - beta2) * g * g;
    weight = kept_weight * weight - rate * mean / (sqrtf(square) / root_correction2 + epsilon);
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
  std::vector<Update<AdamRule>> updates;
  for (Parameter* parameter : parameters) {
    const Tensor& grad = parameter->variable.grad();
    if (!parameter->trainable || !grad.defined()) continue;
    Tensor& weight = parameter->variable.value();
    Tensor& mean = state_.at(stream, "mean." + parameter->name, weight.shape());
    Tensor& square = state_.at(stream, "square." + parameter->name, weight.shape());
    const double t = count_step(stream, parameter->name);

    const double own_rate = rate * parameter->learning_rate;
    const double decay = parameter->weight_decay ? weight_decay_ : 0;
    const AdamRule rule{static_cast<float>(own_rate / (1 - std::pow(beta1_, t))),
                        static_cast<float>(beta1_),
                        static_cast<float>(beta2_),
                        static_cast<float>(epsilon_),
                        static_cast<float>(decoupled_ ? 0 : decay),
                        static_cast<float>(decoupled_ ? 1 - own_rate * decay : 1),
                        static_cast<float>(std::sqrt(1 - std::pow(beta2_, t)))};
    updates.push_back({rule, weight.size(), grad.read(), weight.write(), {mean.write(), square.write()}});
  }
  update_parameters(stream, updates);
}

// Steps are counted per parameter, so that one without a gradient for a while is corrected rightly. Exact up to 2^24
// steps. The counts stay on the host, where reading one waits for no device; a checkpoint gives them back on the
// device.
double Adam::count_step(Stream& stream, const std::string& parameter_name) {
  Tensor& steps = state_.at(*host_, "steps." + parameter_name, {1});
  if (steps.device() != host_->device()) steps = Tensor::from(*host_, {1}, steps.to_vector(stream));
  return *steps.write() += 1;
}

}  // namespace twiddle
