#pragma once
#include "framework/optimizers/rule_optimizer.h"

namespace twiddle {

// Adam (Kingma, Ba 2015): running means of gradient and squared gradient, corrected for their start at zero.
// Weight decay joins the gradient; AdamW (Loshchilov, Hutter 2019) takes it off the weight instead.
template <bool decoupled>
struct AdamRule : UpdateRule {
  static constexpr const char* kind = decoupled ? "adamw" : "adam";
  static constexpr std::array states{"mean", "square"};
  static constexpr int checked_states = 1, correction_count = 2;
  float beta1 = 0, beta2 = 0, epsilon = 0;
  const float* corrections = nullptr;           // 1 - beta1^t, sqrt(1 - beta2^t)
  float kept_weight = 1, root_correction2 = 1;  // of the step

  AdamRule() = default;
  explicit AdamRule(Params& params)
      : beta1(static_cast<float>(params.number("beta1", 0.9, 0, 0.999999))),
        beta2(static_cast<float>(params.number("beta2", 0.999, 0, 0.999999))),
        epsilon(static_cast<float>(params.number("epsilon", 1e-8, 1e-20, 1))) {
    decay = static_cast<float>(params.number("weight_decay", decoupled ? 0.01 : 0.0, 0, 1e3));
  }
  std::string describe() const { return join(" beta ", format_option(beta1), ", ", format_option(beta2)); }

  TWIDDLE_HD void correct(double t, float* to) const {
    to[0] = static_cast<float>(1 - pow(double(beta1), t));
    to[1] = static_cast<float>(sqrt(1 - pow(double(beta2), t)));
  }
  TWIDDLE_HD void begin(float step_rate) {
    kept_weight = decoupled ? 1 - step_rate * rate * decay : 1;
    rate = step_rate * rate / corrections[0];
    root_correction2 = corrections[1];
  }
  TWIDDLE_HD void operator()(float grad, float& weight, float* state) const {
    const float g = decoupled ? grad : grad + decay * weight;
    float &mean = state[0], &square = state[1];
    mean = beta1 * mean + (1 - beta1) * g;
    square = beta2 * square + (1 - beta2) * g * g;
    weight = kept_weight * weight - rate * mean / (sqrtf(square) / root_correction2 + epsilon);
  }
};

using Adam = AdamRule<false>;
using AdamW = AdamRule<true>;

}  // namespace twiddle
