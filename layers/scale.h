#pragma once
#include "layers/layer.h"

namespace twiddle {

// Each channel times a trained factor (layer scale: Touvron et al. 2021). Options: init, with which every factor
// starts.
class Scale : public Layer {
 public:
  Scale(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return true; }

 private:
  Parameter* scale_;
};

}  // namespace twiddle
