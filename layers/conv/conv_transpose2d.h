#pragma once
#include <array>
#include <string>

#include "layers/conv/conv2d.h"

namespace twiddle {

// The transposed convolution: x [batch, channels, height, width] to [batch, filters, out_h, out_w], where an output is
// (h - 1) stride - 2 pad + dilation (kernel - 1) + output_pad + 1 high. It is the gradient of a convolution that goes
// the other way, of y to x: that one's backward_input is this one's forward pass, so that every engine serves it. Its
// weight is [channels, filters / groups, kernel_h, kernel_w].
class ConvTranspose2d : public Conv2d {
 public:
  ConvTranspose2d(const Site& site, Params& params);
  std::string describe() const override;

 private:
  std::array<int, 2> output_pad_{};
};

}  // namespace twiddle
