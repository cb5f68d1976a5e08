#pragma once
#include "layers/layer.h"

namespace twiddle {

// x / (1 + exp(-x)), also called swish.
class Silu : public Layer {
 public:
  Silu(const Site& site, Params&) : Layer(site.name, site.input) {}
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return true; }
};

}  // namespace twiddle
