#include "layers/sigmoid.h"

#include <cmath>

#include "layers/elementwise.h"

namespace twiddle {

namespace {

struct SigmoidFunction {
  TWIDDLE_HD float forward(float x) const { return 1 / (1 + expf(-x)); }
  TWIDDLE_HD float backward(float y, float grad_y) const { return grad_y * y * (1 - y); }
};

}  // namespace

Variable Sigmoid::forward(Context& ctx, const Variable& x) {
  return map_keeping_output(ctx, name(), x, SigmoidFunction{}, exp_cost);
}

}  // namespace twiddle
