#pragma once
#include <memory>

#include "framework/optimizers/rule_optimizer.h"

namespace twiddle {

// Stochastic gradient descent, in the same form as PyTorch's: the rate is outside the velocity.
struct Sgd : UpdateRule {
  static constexpr const char* kind = "sgd";
  float momentum = 0;

  std::string describe() const { return ""; }
  TWIDDLE_HD void operator()(float grad, float& weight, float*) const { weight -= rate * (grad + decay * weight); }
};

struct MomentumSgd : Sgd {
  static constexpr std::array states{"momentum"};

  std::string describe() const { return " momentum " + format_option(momentum); }
  TWIDDLE_HD void operator()(float grad, float& weight, float* velocity) const {
    *velocity = momentum * *velocity + grad + decay * weight;
    weight -= rate * *velocity;
  }
};

struct NesterovSgd : MomentumSgd {
  std::string describe() const { return MomentumSgd::describe() + " (Nesterov)"; }
  TWIDDLE_HD void operator()(float grad, float& weight, float* velocity) const {
    const float g = grad + decay * weight;
    *velocity = momentum * *velocity + g;
    weight -= rate * (g + momentum * *velocity);
  }
};

// One name for three rules: without a momentum, no state is kept.
inline std::unique_ptr<Optimizer> make_sgd(Params& params) {
  Sgd plain;
  plain.momentum = static_cast<float>(params.number("momentum", 0.0, 0, 1));
  plain.decay = static_cast<float>(params.number("weight_decay", 0.0, 0, 1e3));
  const bool nesterov = params.flag("nesterov", false);
  if (nesterov && plain.momentum == 0) params.error("nesterov", "nesterov needs a momentum above 0");
  if (plain.momentum == 0) return std::make_unique<RuleOptimizer<Sgd>>(plain);
  if (nesterov) return std::make_unique<RuleOptimizer<NesterovSgd>>(NesterovSgd{{plain}});
  return std::make_unique<RuleOptimizer<MomentumSgd>>(MomentumSgd{plain});
}

}  // namespace twiddle
