#include "layers/leaky_relu.h"

#include "framework/config/params.h"
#include "layers/elementwise.h"

namespace twiddle {

namespace {

struct LeakyReluFunction {
  float slope;
  TWIDDLE_HD float forward(float x) const { return (x > 0 ? 1 : slope) * x; }
  // The sign of y is that of x, since the slope is not negative; with a slope of 0 both branches agree at y = 0.
  TWIDDLE_HD float backward(float y, float grad_y) const { return (y > 0 ? 1 : slope) * grad_y; }
};

}  // namespace

LeakyRelu::LeakyRelu(const Site& site, Params& params)
    : Layer(site.name, site.input), slope_(static_cast<float>(params.number("slope", 0.01, 0, 1))) {}

std::string LeakyRelu::describe() const {
  return join("slope ", slope_);
}

Variable LeakyRelu::forward(Context& ctx, const Variable& x) {
  return map_keeping_output(ctx, name(), x, LeakyReluFunction{slope_}, 1);
}

}  // namespace twiddle
