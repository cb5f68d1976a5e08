#include "layers/relu.h"

#include "framework/for_each.h"

namespace twiddle {

namespace {

struct ReluForward {
  const float* x;
  float* y;
  TWIDDLE_HD void operator()(std::int64_t i) const { y[i] = x[i] < 0 ? 0 : x[i]; }
};

struct ReluBackward {
  const float *y, *grad_y;
  float* grad_x;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    const float grad = grad_y[i];  // read in any case, which leaves no branch
    grad_x[i] = y[i] > 0 ? grad : 0;
  }
};

}  // namespace

Variable Relu::forward(Context& ctx, const Variable& x) {
  Tensor y(*ctx.stream, x.value().shape());
  for_each_index(*ctx.stream, y.size(), ReluForward{x.value().read(), y.write()});
  return ctx.tape.record(name(), y, {x}, [x, y](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, y.shape());
    for_each_index(stream, y.size(), ReluBackward{y.read(), grad_y.read(), grad_x.write()});
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
