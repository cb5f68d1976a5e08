#pragma once
#include "layers/layer.h"

namespace twiddle {

// max(x, 0); a NaN stays one.
class Relu : public Layer {
 public:
  Relu(const Site& site, Params&) : Layer(site.name, site.input) {}
  Variable forward(Context& ctx, const Variable& x) override;
  bool keeps_output() const override { return true; }
};

}  // namespace twiddle
