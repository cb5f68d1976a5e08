#pragma once
#include "layers/layer.h"

namespace twiddle {

// All axes but the batch's made one; no element moves.
class Flatten : public Layer {
 public:
  Flatten(const Site& site, Params&) : Layer(site.name, {count_of(site.input)}) {}
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool shares_input() const override { return true; }
};

}  // namespace twiddle
