#include "layers/tanh.h"

#include <cmath>

#include "framework/for_each.h"

namespace twiddle {

namespace {

constexpr std::int64_t tanh_cost = 30;  // simple operations that one hyperbolic tangent is worth

struct TanhForward {
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t i) const { y[i] = tanhf(x[i]); }
};

struct TanhBackward {
  const float *y, *grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const { grad_x[i] = grad_y[i] * (1 - y[i] * y[i]); }
};

}  // namespace

Variable Tanh::forward(Context& ctx, const Variable& x) {
  Tensor y(*ctx.stream, x.value().shape());
  for_each_index(*ctx.stream, y.size(), TanhForward{x.value().read(), y.write()}, tanh_cost);
  return ctx.tape.record(name(), y, {x}, [x, y](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, y.shape());
    for_each_index(stream, y.size(), TanhBackward{y.read(), grad_y.read(), grad_x.write()});
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
