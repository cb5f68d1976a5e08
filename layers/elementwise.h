#pragma once
#include <cstdint>
#include <string>

#include "framework/for_each.h"
#include "layers/layer.h"

namespace twiddle {

// The cost of one exponential in simple operations, for the loops of framework/for_each.h.
constexpr std::int64_t exp_cost = 20;

namespace detail {

template <class Function>
struct ForwardOf {
  Function function;
  TWIDDLE_HD float operator()(float x) const { return function.forward(x); }
};

template <class Function>
struct BackwardOf {
  Function function;
  TWIDDLE_HD float operator()(float kept, float grad_y) const { return function.backward(kept, grad_y); }
};

}  // namespace detail

// functor(first[i], others[i]...) for every element, as a new tensor of the shape and type of `first`. All have one
// type.
template <class Functor, class... Tensors>
Tensor map_tensors(Stream& stream, const Functor& functor, std::int64_t cost, const Tensor& first,
                   const Tensors&... others) {
  Tensor result(stream, first.shape(), first.type());
  with_type(first.type(), [&](auto t) {
    using T = decltype(t);
    map_elements(stream, result.size(), functor, cost, result.write<T>(), first.read<T>(),
                 others.template read<T>()...);
  });
  return result;
}

// y = function.forward(x), element by element. The backward pass keeps the input: grad_x = function.backward(x,
// grad_y). `cost`: simple operations of one call of either.
template <class Function>
Variable map_keeping_input(Context& ctx, const std::string& name, const Variable& x, const Function& function,
                           std::int64_t cost) {
  const Tensor value = x.value();
  const Tensor y = map_tensors(*ctx.stream, detail::ForwardOf<Function>{function}, cost, value);
  return ctx.tape.record(name, y, {x}, [x, value, function, cost](Context& back, const Tensor& grad_y) {
    x.add_grad(back, map_tensors(*back.stream, detail::BackwardOf<Function>{function}, cost, value, grad_y));
  });
}

// The same, but the backward pass keeps the output: grad_x = function.backward(y, grad_y), a few simple operations.
// `cost`: of one forward call.
template <class Function>
Variable map_keeping_output(Context& ctx, const std::string& name, const Variable& x, const Function& function,
                            std::int64_t cost) {
  const Tensor y = map_tensors(*ctx.stream, detail::ForwardOf<Function>{function}, cost, x.value());
  return ctx.tape.record(name, y, {x}, [x, y, function](Context& back, const Tensor& grad_y) {
    x.add_grad(back, map_tensors(*back.stream, detail::BackwardOf<Function>{function}, 1, y, grad_y));
  });
}

}  // namespace twiddle
