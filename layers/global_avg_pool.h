#pragma once
#include "layers/layer.h"

namespace twiddle {

// The mean of each plane: [channels, height, width] to [channels].
class GlobalAvgPool : public Layer {
 public:
  GlobalAvgPool(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
};

}  // namespace twiddle
