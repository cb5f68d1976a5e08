#pragma once
#include "framework/optimizers/rule_optimizer.h"

namespace twiddle {

// Lion (Chen et al., Symbolic Discovery of Optimization Algorithms, 2023): each weight moves by the rate, in the
// direction of the sign of a mean gradient. Weight decay is decoupled from the gradient.
struct Lion : UpdateRule {
  static constexpr const char* kind = "lion";
  static constexpr std::array states{"mean"};
  static constexpr int checked_states = 1;  // the sign of an infinite mean is finite
  float beta1 = 0, beta2 = 0;

  Lion() = default;
  explicit Lion(Params& params)
      : beta1(static_cast<float>(params.number("beta1", 0.9, 0, 0.999999))),
        beta2(static_cast<float>(params.number("beta2", 0.99, 0, 0.999999))) {
    decay = static_cast<float>(params.number("weight_decay", 0.0, 0, 1e3));
  }
  std::string describe() const { return join(" beta ", format_option(beta1), ", ", format_option(beta2)); }

  TWIDDLE_HD void operator()(float grad, float& weight, float* mean) const {
    const float direction = beta1 * *mean + (1 - beta1) * grad;
    const float sign = static_cast<float>(direction > 0) - static_cast<float>(direction < 0);
    weight -= rate * (sign + decay * weight);
    *mean = beta2 * *mean + (1 - beta2) * grad;
  }
};

}  // namespace twiddle
