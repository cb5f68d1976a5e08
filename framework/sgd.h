#pragma once
#include "framework/optimizer.h"

namespace twiddle {

// Stochastic gradient descent: v = momentum v + (g + decay w); w -= rate v, or with Nesterov's look-ahead w -= rate (g
// + momentum v). The same form as PyTorch's: the rate is outside the velocity.
class Sgd final : public Optimizer {
 public:
  explicit Sgd(Params& params);
  std::string kind() const override { return "sgd"; }
  std::string describe() const override;
  void step(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers) override;
  std::vector<std::string> state_names() const override {
    return momentum_ > 0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
  }

 private:
  template <class Rule>
  void step_by(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers);

  double momentum_, weight_decay_;
  bool nesterov_;
};

}  // namespace twiddle
