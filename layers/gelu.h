#pragma once
#include "layers/layer.h"

namespace twiddle {

// x times the probability that a normal number lies below x (Hendrycks, Gimpel 2016): x (1 + erf(x / sqrt 2)) / 2.
// Options: approximate: tanh takes x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 for it, as GPT-2 does.
class Gelu : public Layer {
 public:
  Gelu(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return true; }
  std::string describe() const override { return by_tanh_ ? "by tanh" : ""; }

 private:
  bool by_tanh_;
};

}  // namespace twiddle
