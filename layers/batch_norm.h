#pragma once
#include "layers/layer.h"

namespace twiddle {

// Each channel shifted and scaled to mean 0 and variance 1 over batch and plane, then by two trained numbers; in
// evaluation by running averages. Where the two numbers are frozen, training goes by the running averages as well, and
// leaves them as they are. Options: momentum (weight of the newest batch), epsilon.
class BatchNorm : public Layer {
 public:
  BatchNorm(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool keeps_input() const override { return !frozen(); }

 private:
  bool frozen() const { return scale_->frozen && bias_->frozen; }
  Variable forward_running(Context& ctx, const Variable& x);

  float momentum_, epsilon_;
  Parameter *scale_, *bias_, *running_mean_, *running_var_;
};

}  // namespace twiddle
