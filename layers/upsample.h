#pragma once
#include <array>

#include "layers/layer.h"

namespace twiddle {

// Planes larger by whole factors: each pixel repeated, or bilinear between the middles of pixels (PyTorch's
// align_corners=False). Options: factor, mode.
class Upsample : public Layer {
 public:
  Upsample(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  std::string describe() const override;

 private:
  std::array<int, 2> factor_;  // height, width
  bool bilinear_;
};

}  // namespace twiddle
