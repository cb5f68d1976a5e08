#pragma once
#include <string>

#include "framework/for_each.h"
#include "layers/layer.h"

namespace twiddle {

// y = forward(x) element by element, whose backward pass, grad_x = backward(x, grad_y), needs the input. `cost`: the
// simple operations that one call of either is worth.
template <class Forward, class Backward>
Variable map_keeping_input(Context& ctx, const std::string& name, const Variable& x, const Forward& forward,
                           const Backward& backward, std::int64_t cost) {
  const Tensor value = x.value();
  Tensor y(*ctx.stream, value.shape());
  map_elements(*ctx.stream, y.size(), forward, cost, y.write(), value.read());
  return ctx.tape.record(name, y, {x}, [x, value, backward, cost](Context& backward_ctx, const Tensor& grad_y) {
    Tensor grad_x(*backward_ctx.stream, value.shape());
    map_elements(*backward_ctx.stream, value.size(), backward, cost, grad_x.write(), value.read(), grad_y.read());
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
