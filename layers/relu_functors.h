#pragma once
#include "framework/for_each.h"

namespace twiddle {

// max(x, 0), a NaN stays one; and its gradient, which needs only the result.
struct ReluForward {
  TWIDDLE_HD float operator()(float x) const { return x < 0 ? 0 : x; }
};

struct ReluBackward {
  TWIDDLE_HD float operator()(float y, float grad_y) const { return y > 0 ? grad_y : 0; }
};

}  // namespace twiddle
