#include "layers/relu.h"

#include "layers/elementwise.h"
#include "layers/relu_functors.h"

namespace twiddle {

Variable Relu::forward(Context& ctx, const Variable& x) {
  if (taken_over_) return x;
  const Tensor y = map_tensors(*ctx.stream, ReluForward{}, 1, x.value());
  return ctx.tape.record(name(), y, {x}, [x, y](Context& back, const Tensor& grad_y) {
    x.add_grad(back, map_tensors(*back.stream, ReluBackward{}, 1, y, grad_y));
  });
}

}  // namespace twiddle
