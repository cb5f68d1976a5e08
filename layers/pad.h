#pragma once
#include <array>

#include "layers/layer.h"

namespace twiddle {

// Rows and columns added around each plane: zeros, or the plane mirrored at its border, which is not repeated
// (PyTorch's "reflect"). Options: size, mode.
class Pad : public Layer {
 public:
  Pad(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  std::string describe() const override;

 private:
  std::array<int, 4> sizes_;  // top, bottom, left, right
  bool mirror_;
};

}  // namespace twiddle
