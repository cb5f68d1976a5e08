#include "layers/silu.h"

#include <cmath>

#include "layers/exp_cost.h"
#include "layers/keeping_input.h"

namespace twiddle {

namespace {

struct SiluForward {
  TWIDDLE_HD float operator()(float x) const { return x / (1 + expf(-x)); }
};

struct SiluBackward {
  TWIDDLE_HD float operator()(float x, float grad_y) const {
    const float s = 1 / (1 + expf(-x));
    return grad_y * s * (1 + x * (1 - s));
  }
};

}  // namespace

Variable Silu::forward(Context& ctx, const Variable& x) {
  return map_keeping_input(ctx, name(), x, SiluForward{}, SiluBackward{}, exp_cost);
}

}  // namespace twiddle
