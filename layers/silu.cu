#include "layers/silu.h"

#include <cmath>

#include "layers/keeping_input.h"

namespace twiddle {

namespace {

constexpr std::int64_t exp_cost = 20;  // simple operations that one exponential is worth

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
