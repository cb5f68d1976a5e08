#pragma once
#include "layers/layer.h"

namespace twiddle {

// Stochastic depth (Huang et al. 2016): in training sets a share of the images to zero, all of an image's values
// together, and scales the others so that the mean stays. As the last of a residual's layers it drops the whole branch.
// Options: rate.
class DropPath : public Layer {
 public:
  DropPath(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  std::string describe() const override;

 private:
  float rate_;
};

}  // namespace twiddle
