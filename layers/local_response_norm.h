#pragma once
#include "layers/layer.h"

namespace twiddle {

// y = x / (k + alpha / size * sum of x^2 over `size` neighbouring channels)^beta, as in AlexNet. Options: size, alpha,
// beta, k.
class LocalResponseNorm : public Layer {
 public:
  LocalResponseNorm(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return true; }
  std::string describe() const override;

 private:
  std::int64_t size_;
  float alpha_, beta_, k_;
};

}  // namespace twiddle
