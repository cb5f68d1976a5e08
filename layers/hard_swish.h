#pragma once
#include "layers/layer.h"

namespace twiddle {

// x min(max(x + 3, 0), 6) / 6, which stands for silu in MobileNetV3 (Howard et al. 2019).
class HardSwish : public Layer {
 public:
  HardSwish(const Site& site, Params&) : Layer(site.name, site.input) {}
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return true; }
};

}  // namespace twiddle
