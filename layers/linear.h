#pragma once
#include "layers/layer.h"

namespace twiddle {

// y = weight x + bias; takes an input of any shape as a row of numbers. Options: outputs, bias, init, bias_init, inputs
// (checked where given), lr and bias_lr (multipliers of the learning rate).
class Linear : public Layer {
 public:
  Linear(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool keeps_input() const override { return true; }
  double flops() const override { return 2.0 * static_cast<double>(inputs_) * static_cast<double>(outputs_); }
  std::string describe() const override;

 private:
  std::int64_t inputs_, outputs_;
  bool tf32_;                    // products of the class tf32
  Parameter* weight_ = nullptr;  // [outputs, inputs]
  Parameter* bias_ = nullptr;    // null: none
};

}  // namespace twiddle
