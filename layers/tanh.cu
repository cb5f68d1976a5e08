#include "layers/tanh.h"

#include <cmath>

#include "layers/elementwise.h"

namespace twiddle {

namespace {

constexpr std::int64_t tanh_cost = 30;  // simple operations that one hyperbolic tangent is worth

struct TanhFunction {
  TWIDDLE_HD float forward(float x) const { return tanhf(x); }
  TWIDDLE_HD float backward(float y, float grad_y) const { return grad_y * (1 - y * y); }
};

}  // namespace

Variable Tanh::forward(Context& ctx, const Variable& x) {
  return map_keeping_output(ctx, name(), x, TanhFunction{}, tanh_cost);
}

}  // namespace twiddle
