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

template <class Function, class... Tensors>
Tensor map_channels(Stream& stream, const BatchShape& planes, const Function& function, std::int64_t cost,
                    const Tensor& parameter, const Tensor& x, const Tensors&... others) {
  Tensor result(stream, x.shape(), x.type());
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    map_rows(stream, planes.rows(), planes.inner,
             RowsByChannel<Function>{function, Divisor(planes.channels), parameter.read()}, cost, result.write<T>(),
             x.read<T>(), others.template read<T>()...);
  });
  return result;
}

// The terms of a row in the gradient of its parameter. A row is a channel of one image or, if planes are single
// numbers, a channel of the whole batch.
template <class Function, bool WholeBatch, class T>
struct ParameterSums {
  Function function;
  Divisor channels;
  std::int64_t inner;
  const float* parameter;
  const T *x, *grad_y;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = WholeBatch ? column * channels.value() + row : row * inner + column;
    return function.backward_parameter(parameter[channels.remainder(row)], to_float(x[i]), to_float(grad_y[i]));
  }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

template <class Function>
Tensor parameter_gradient(Stream& stream, const BatchShape& planes, const Function& function, const Tensor& parameter,
                          const Tensor& x, const Tensor& grad_y) {
  const Divisor channels(planes.channels);
  const bool whole_batch = planes.inner == 1;
  Tensor sums(stream, {whole_batch ? planes.channels : planes.rows()});
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    if (whole_batch)
      reduce_rows(stream, planes.channels, planes.batch,
                  ParameterSums<Function, true, T>{function, channels, 1, parameter.read(), x.read<T>(),
                                                   grad_y.read<T>(), sums.write()});
    else
      reduce_rows(stream, planes.rows(), planes.inner,
                  ParameterSums<Function, false, T>{function, channels, planes.inner, parameter.read(), x.read<T>(),
                                                    grad_y.read<T>(), sums.write()});
  });
  return whole_batch ? sums : sum_over_channels(stream, sums, planes.channels, 1);
}

}  // namespace detail

// y = function.forward(p, x), element by element, where p is the entry of `parameter`, [channels], of the element's
// channel. grad_x = function.backward(p, x, grad_y), and the gradient of p is the sum of function.backward_parameter(p,
// x, grad_y) over the channel. `cost`: simple operations of one call.
template <class Function>
Variable map_by_channel(Context& ctx, const std::string& name, const Variable& x, const Variable& parameter,
                        const Function& function, std::int64_t cost) {
  const Tensor value = x.value();
  const BatchShape planes = batch_shape_of(value);
  const Tensor y = detail::map_channels(*ctx.stream, planes, function, cost, parameter.value(), value);
  return ctx.tape.record(name, y, {x, parameter}, [=](Context& back, const Tensor& grad_y) {
    Stream& stream = *back.stream;
    const Tensor numbers = parameter.value();
    if (parameter.needs_grad())
      parameter.add_grad(back, detail::parameter_gradient(stream, planes, function, numbers, value, grad_y));
    if (!x.needs_grad()) return;
    x.add_grad(back, detail::map_channels(stream, planes, function, cost, numbers, value, grad_y));
  });
}

}  // namespace twiddle
