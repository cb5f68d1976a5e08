#include "layers/relu.h"

#include "layers/relu_functors.h"

namespace twiddle {

Variable Relu::forward(Context& ctx, const Variable& x) {
  if (taken_over_) return x;
  Tensor y(*ctx.stream, x.value().shape());
  map_elements(*ctx.stream, y.size(), ReluForward{}, 1, y.write(), x.value().read());
  return ctx.tape.record(name(), y, {x}, [x, y](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    Tensor grad_x(stream, y.shape());
    map_elements(stream, y.size(), ReluBackward{}, 1, grad_x.write(), y.read(), grad_y.read());
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
