#include "layers/sigmoid.h"

#include <cmath>

#include "framework/for_each.h"

namespace twiddle {

namespace {

constexpr std::int64_t exp_cost = 20;  // simple operations that one exponential is worth

struct SigmoidForward {
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t i) const { y[i] = 1 / (1 + expf(-x[i])); }
};

struct SigmoidBackward {
  const float *y, *grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const { grad_x[i] = grad_y[i] * y[i] * (1 - y[i]); }
};

}  // namespace

Variable Sigmoid::forward(Context& ctx, const Variable& x) {
  Tensor y(*ctx.stream, x.value().shape());
  for_each_index(*ctx.stream, y.size(), SigmoidForward{x.value().read(), y.write()}, exp_cost);
  return ctx.tape.record(name(), y, {x}, [x, y](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, y.shape());
    for_each_index(stream, y.size(), SigmoidBackward{y.read(), grad_y.read(), grad_x.write()});
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
