#pragma once
#include "framework/optimizer.h"

namespace twiddle {

// Adam (Kingma, Ba 2015): running means of gradient and squared gradient, corrected for their start at zero.
// Weight decay joins the gradient; AdamW (Loshchilov, Hutter 2019) takes it off the weight instead.
class Adam : public Optimizer {
 public:
  explicit Adam(Params& params) : Adam(params, false, 0.0) {}
  std::string kind() const override { return decoupled_ ? "adamw" : "adam"; }
  std::string describe() const override;
  void step(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers) override;
  std::vector<std::string> state_names() const override { return {"mean", "square"}; }

 protected:
  Adam(Params& params, bool decoupled, double default_decay);

 private:
  Tensor count_steps(Stream& stream, const std::vector<Parameter*>& parameters, const StepNumbers& numbers);

  double beta1_, beta2_, epsilon_, weight_decay_;
  bool decoupled_;
};

class AdamW final : public Adam {
 public:
  explicit AdamW(Params& params) : Adam(params, true, 0.01) {}
};

}  // namespace twiddle
