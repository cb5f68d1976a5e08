#include "layers/leaky_relu.h"

#include "framework/config/params.h"
#include "framework/for_each.h"

namespace twiddle {

namespace {

struct LeakyReluForward {
  float slope;
  TWIDDLE_HD float operator()(float x) const { return (x > 0 ? 1 : slope) * x; }
};

// The sign of y is that of x, since the slope is not negative; with a slope of 0 both branches agree at y = 0.
struct LeakyReluBackward {
  float slope;
  TWIDDLE_HD float operator()(float y, float grad_y) const { return (y > 0 ? 1 : slope) * grad_y; }
};

}  // namespace

LeakyRelu::LeakyRelu(const Site& site, Params& params)
    : Layer(site.name, site.input), slope_(static_cast<float>(params.number("slope", 0.01, 0, 1))) {}

std::string LeakyRelu::describe() const {
  return join("slope ", slope_);
}

Variable LeakyRelu::forward(Context& ctx, const Variable& x) {
  Tensor y(*ctx.stream, x.value().shape());
  map_elements(*ctx.stream, y.size(), LeakyReluForward{slope_}, 1, y.write(), x.value().read());
  return ctx.tape.record(name(), y, {x}, [x, y, slope = slope_](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, y.shape());
    map_elements(stream, y.size(), LeakyReluBackward{slope}, 1, grad_x.write(), y.read(), grad_y.read());
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
