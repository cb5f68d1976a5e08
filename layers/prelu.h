#pragma once
#include "layers/layer.h"

namespace twiddle {

// x where it is positive, its channel's learnt slope times x elsewhere (He et al. 2015). Options: init, with which
// every slope starts.
class PRelu : public Layer {
 public:
  PRelu(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return true; }

 private:
  Parameter* slope_;
};

}  // namespace twiddle
