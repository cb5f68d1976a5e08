#pragma once
#include "layers/layer.h"

namespace twiddle {

// In training sets a share of the values to zero and scales the others so that the mean stays. Options: rate.
class Dropout : public Layer {
 public:
  Dropout(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  std::string describe() const override;

 private:
  float rate_;
};

}  // namespace twiddle
