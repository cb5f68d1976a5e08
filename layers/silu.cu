#include "layers/silu.h"

#include <cmath>

#include "layers/elementwise.h"

namespace twiddle {

namespace {

struct SiluFunction {
  TWIDDLE_HD float forward(float x) const { return x / (1 + expf(-x)); }
  TWIDDLE_HD float backward(float x, float grad_y) const {
    const float s = 1 / (1 + expf(-x));
    return grad_y * s * (1 + x * (1 - s));
  }
};

}  // namespace

Variable Silu::forward(Context& ctx, const Variable& x) {
  return map_keeping_input(ctx, name(), x, SiluFunction{}, exp_cost);
}

}  // namespace twiddle
