#include "layers/sigmoid.h"

#include <cmath>

#include "framework/for_each.h"
#include "layers/exp_cost.h"

namespace twiddle {

namespace {

struct SigmoidForward {
  TWIDDLE_HD float operator()(float x) const { return 1 / (1 + expf(-x)); }
};

struct SigmoidBackward {
  TWIDDLE_HD float operator()(float y, float grad_y) const { return grad_y * y * (1 - y); }
};

}  // namespace

Variable Sigmoid::forward(Context& ctx, const Variable& x) {
  Tensor y(*ctx.stream, x.value().shape());
  map_elements(*ctx.stream, y.size(), SigmoidForward{}, exp_cost, y.write(), x.value().read());
  return ctx.tape.record(name(), y, {x}, [x, y](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, y.shape());
    map_elements(stream, y.size(), SigmoidBackward{}, 1, grad_x.write(), y.read(), grad_y.read());
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
