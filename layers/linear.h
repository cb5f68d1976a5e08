#pragma once
#include "layers/conv/conv2d.h"

namespace twiddle {

// y = weight x + bias, as a 1x1 convolution of planes of one element: the tuner selects its plans, too. It takes an
// input of any shape as a row of numbers. Options: outputs, bias, init, bias_init, inputs (checked if given), lr and
// bias_lr (multipliers of the learning rate).
class Linear : public Conv2d {
 public:
  Linear(const Site& site, Params& params);
  std::string describe() const override;
};

}  // namespace twiddle
