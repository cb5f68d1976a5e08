#pragma once
#include "layers/layer.h"

namespace twiddle {

// x where it is positive, slope x elsewhere. Options: slope.
class LeakyRelu : public Layer {
 public:
  LeakyRelu(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_output() const override { return true; }
  std::string describe() const override;

 private:
  float slope_;
};

}  // namespace twiddle
