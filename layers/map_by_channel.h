#pragma once
#include <string>

#include "layers/planes.h"

namespace twiddle {

namespace detail {

template <class Function>
struct RowsByChannel {
  Function function;
  Divisor channels;
  const float* parameter;
  struct Row {
    Function function;
    float parameter;
    TWIDDLE_HD float operator()(std::int64_t, float x) const { return function.forward(parameter, x); }
    TWIDDLE_HD float operator()(std::int64_t, float x, float grad_y) const {
      return function.backward(parameter, x, grad_y);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {function, parameter[channels.remainder(row)]}; }
};

template <class Function>
struct ParameterTerm {
  Function function;
  Divisor channels;
  std::int64_t inner;
  const float *parameter, *x, *grad_y;
  TWIDDLE_HD float operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * inner + column;
    return function.backward_parameter(parameter[channels.remainder(row)], x[i], grad_y[i]);
  }
};

}  // namespace detail

// y = function.forward(p, x), element by element, where p is the entry of `parameter`, [channels], of the element's
// channel. grad_x = function.backward(p, x, grad_y), and the gradient of p is the sum of function.backward_parameter(p,
// x, grad_y) over the channel. `cost`: simple operations of one call.
template <class Function>
Variable map_by_channel(Context& ctx, const std::string& name, const Variable& x, const Variable& parameter,
                        const Function& function, std::int64_t cost) {
  const Tensor value = x.value();
  const BatchShape planes = batch_shape_of(value);
  const Divisor channels(planes.channels);
  Tensor y(*ctx.stream, value.shape());
  map_rows(*ctx.stream, planes.rows(), planes.inner,
           detail::RowsByChannel<Function>{function, channels, parameter.value().read()}, cost, y.write(),
           value.read());
  return ctx.tape.record(name, y, {x, parameter}, [=](Context& back, const Tensor& grad_y) {
    const float* const numbers = parameter.value().read();
    if (parameter.needs_grad())
      parameter.add_grad(back, sum_by_channel(*back.stream, planes,
                                              detail::ParameterTerm<Function>{function, channels, planes.inner, numbers,
                                                                              value.read(), grad_y.read()}));
    if (!x.needs_grad()) return;
    Tensor grad_x(*back.stream, value.shape());
    map_rows(*back.stream, planes.rows(), planes.inner, detail::RowsByChannel<Function>{function, channels, numbers},
             cost, grad_x.write(), value.read(), grad_y.read());
    x.add_grad(back, grad_x);
  });
}

}  // namespace twiddle
