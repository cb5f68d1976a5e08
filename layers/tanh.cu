#include "layers/tanh.h"

#include <cmath>

#include "framework/for_each.h"

namespace twiddle {

namespace {

constexpr std::int64_t tanh_cost = 30;  // simple operations that one hyperbolic tangent is worth

struct TanhForward {
  TWIDDLE_HD float operator()(float x) const { return tanhf(x); }
};

struct TanhBackward {
  TWIDDLE_HD float operator()(float y, float grad_y) const { return grad_y * (1 - y * y); }
};

}  // namespace

Variable Tanh::forward(Context& ctx, const Variable& x) {
  Tensor y(*ctx.stream, x.value().shape());
  map_elements(*ctx.stream, y.size(), TanhForward{}, tanh_cost, y.write(), x.value().read());
  return ctx.tape.record(name(), y, {x}, [x, y](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, y.shape());
    map_elements(stream, y.size(), TanhBackward{}, 1, grad_x.write(), y.read(), grad_y.read());
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
