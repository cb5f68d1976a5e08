#include "layers/leaky_relu.h"

#include "framework/for_each.h"

namespace twiddle {

namespace {

struct LeakyReluForward {
  float slope;
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t i) const { y[i] = (x[i] > 0 ? 1 : slope) * x[i]; }
};

// The sign of y is that of x, since the slope is not negative; with a slope of 0 both branches agree at y = 0.
struct LeakyReluBackward {
  float slope;
  const float *y, *grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const { grad_x[i] = (y[i] > 0 ? 1 : slope) * grad_y[i]; }
};

}  // namespace

LeakyRelu::LeakyRelu(const Site& site, Params& params)
    : Layer(site.name, site.input), slope_(static_cast<float>(params.number("slope", 0.01, 0, 1))) {}

std::string LeakyRelu::describe() const {
  return join("slope ", slope_);
}

Variable LeakyRelu::forward(Context& ctx, const Variable& x) {
  Tensor y(*ctx.stream, x.value().shape());
  for_each_index(*ctx.stream, y.size(), LeakyReluForward{slope_, x.value().read(), y.write()});
  return ctx.tape.record(name(), y, {x}, [x, y, slope = slope_](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, y.shape());
    for_each_index(stream, y.size(), LeakyReluBackward{slope, y.read(), grad_y.read(), grad_x.write()});
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
