#pragma once
#include "layers/layer.h"

namespace twiddle {

// Groups of neighbouring channels of each image shifted and scaled to mean 0 and variance 1, then each channel by two
// trained numbers (Wu, He 2018). Options: groups, epsilon.
class GroupNorm : public Layer {
 public:
  GroupNorm(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  bool keeps_input() const override { return true; }
  std::size_t kept_bytes() const override;
  std::string describe() const override;

 private:
  std::int64_t groups_;
  float epsilon_;
  Parameter *scale_, *bias_;
};

}  // namespace twiddle
