#pragma once
#include <array>
#include <string>

#include "layers/layer.h"

namespace twiddle {

// Adds rows and columns (top, bottom, left, right) around the planes of x: zeros, or the plane mirrored.
Variable pad_planes(Context& ctx, const std::string& name, const Variable& x, const std::array<int, 4>& sizes,
                    bool mirror = false);

// Rows and columns added around each plane: zeros, or the plane mirrored at its border, which is not repeated
// (PyTorch's "reflect"). Options: size, mode.
class Pad : public Layer {
 public:
  Pad(const Site& site, Params& params);
  Variable forward(Context& ctx, const Variable& x) override;
  bool takes_16_bits() const override { return true; }
  std::string describe() const override;

 private:
  std::array<int, 4> sizes_;  // top, bottom, left, right
  bool mirror_;
};

}  // namespace twiddle
