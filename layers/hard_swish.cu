#include "layers/hard_swish.h"

#include "layers/elementwise.h"

namespace twiddle {

namespace {

// Written so that a NaN stays one.
struct HardSwishFunction {
  TWIDDLE_HD float forward(float x) const { return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) * (1 / 6.0f); }
  TWIDDLE_HD float backward(float x, float grad_y) const {
    return x <= -3 ? 0 : x >= 3 ? grad_y : grad_y * (x * (1 / 3.0f) + 0.5f);
  }
};

}  // namespace

Variable HardSwish::forward(Context& ctx, const Variable& x) {
  return map_keeping_input(ctx, name(), x, HardSwishFunction{}, 3);
}

}  // namespace twiddle
