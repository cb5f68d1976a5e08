#include "layers/gelu.h"

#include <cmath>

#include "framework/config/params.h"
#include "layers/elementwise.h"

namespace twiddle {

namespace {

constexpr std::int64_t erf_cost = 40, tanh_cost = 40;  // simple operations that one call is worth

struct GeluFunction {
  TWIDDLE_HD float forward(float x) const { return 0.5f * x * (1 + erff(x * 0.70710678f)); }
  // The probability below x, and x times the density at x.
  TWIDDLE_HD float backward(float x, float grad_y) const {
    const float below = 0.5f * (1 + erff(x * 0.70710678f)), density = 0.39894228f * expf(-0.5f * x * x);
    return grad_y * (below + x * density);
  }
};

constexpr float root_two_by_pi = 0.79788456f, cubic = 0.044715f;

struct GeluTanhFunction {
  TWIDDLE_HD float forward(float x) const { return 0.5f * x * (1 + tanhf(root_two_by_pi * (x + cubic * x * x * x))); }
  // From 10 on the slope is 0 or 1 to the last bit. Further out x * x overflows, and infinity times 0 would be NaN.
  TWIDDLE_HD float backward(float input, float grad_y) const {
    const float x = input > 10 ? 10 : input < -10 ? -10 : input;  // a NaN stays one
    const float t = tanhf(root_two_by_pi * (x + cubic * x * x * x));
    const float slope = root_two_by_pi * (1 + 3 * cubic * x * x);
    return grad_y * 0.5f * (1 + t + x * (1 - t * t) * slope);
  }
};

}  // namespace

Gelu::Gelu(const Site& site, Params& params)
    : Layer(site.name, site.input), by_tanh_(params.choice("approximate", "none", {"none", "tanh"}) == "tanh") {}

Variable Gelu::forward(Context& ctx, const Variable& x) {
  if (by_tanh_) return map_keeping_input(ctx, name(), x, GeluTanhFunction{}, tanh_cost);
  return map_keeping_input(ctx, name(), x, GeluFunction{}, erf_cost);
}

}  // namespace twiddle
