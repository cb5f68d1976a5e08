#pragma once
#include "layers/pool_window.h"

namespace twiddle {

// The largest value of each window; a NaN counts as larger than all. Options: kernel, stride (default: the kernel),
// pad, rounding.
class MaxPool : public Layer {
 public:
  MaxPool(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  std::size_t kept_bytes() const override;  // where each maximum was found
  std::string describe() const override { return window_.describe(); }

 private:
  PoolWindow window_;
};

}  // namespace twiddle
