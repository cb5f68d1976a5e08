#pragma once
#include "layers/pool_window.h"

namespace twiddle {

// The mean of each window. Options: kernel, stride (default: the kernel), pad, rounding, and count_padding: whether
// padding counts as zeros of the mean (default) or is left out of it.
class AvgPool : public Layer {
 public:
  AvgPool(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  std::string describe() const override { return window_.describe(); }

 private:
  bool count_padding_;
  PoolWindow window_;
};

}  // namespace twiddle
