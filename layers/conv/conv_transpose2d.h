#pragma once
#include <array>
#include <string>

#include "layers/conv/conv2d.h"

namespace twiddle {

// The transposed convolution: x [batch, channels, height, width] to [batch, filters, out_h, out_w], where an output is
// (h - 1) stride - 2 pad + dilation (kernel - 1) + output_pad + 1 high. It is the gradient of a convolution of
// y to x: that convolution's backward_input is this layer's forward pass, so every engine supports it. The weight is
// [channels, filters / groups, kernel_h, kernel_w].
class ConvTranspose2d : public Conv2d {
 public:
  ConvTranspose2d(const Site& site, Params& params);
  std::string describe() const override;

 private:
  std::array<int, 2> output_pad_{};
};

}  // namespace twiddle
