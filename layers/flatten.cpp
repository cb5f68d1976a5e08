#include "layers/flatten.h"

namespace twiddle {

Variable Flatten::forward(Context& ctx, const Variable& x) {
  const Shape shape = x.value().shape();
  return ctx.tape.record(
      name(), x.value().reshaped({shape.at(0), output_shape().at(0)}), {x},
      [x, shape](Context& backward_ctx, const Tensor& grad_y) { x.add_grad(backward_ctx, grad_y.reshaped(shape)); });
}

}  // namespace twiddle
