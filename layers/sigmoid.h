#pragma once
#include "layers/layer.h"

namespace twiddle {

// 1 / (1 + exp(-x)).
class Sigmoid : public Layer {
 public:
  Sigmoid(const Site& site, Params&) : Layer(site.name, site.input) {}
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_output() const override { return true; }
};

}  // namespace twiddle
