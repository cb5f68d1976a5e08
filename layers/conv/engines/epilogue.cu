#include "layers/conv/engines/epilogue.h"

#include "framework/for_each.h"
#include "framework/tensor_ops.h"
#include "layers/relu_functors.h"

namespace twiddle {

namespace {

struct BiasAndRelu {  // y as rows of pixels, one per filter and image
  Divisor filters;
  const float* bias;
  struct Row {
    float bias;
    TWIDDLE_HD float operator()(std::int64_t, float y) const { return y + bias < 0 ? 0 : y + bias; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {bias[filters.remainder(row)]}; }
};

struct LinearBiasAndRelu {  // y as rows of filters, one per image
  const float* bias;
  bool relu;
  TWIDDLE_HD float operator()(std::int64_t filter, float y) const {
    const float sum = y + bias[filter];
    return relu && sum < 0 ? 0 : sum;
  }
  TWIDDLE_HD LinearBiasAndRelu row(std::int64_t) const { return *this; }
};

std::int64_t places_of(const Tensor& y) {
  return y.size() / (y.dim(0) * y.dim(1));
}

}  // namespace

void add_bias_and_relu(Stream& stream, ConvOperands& operands) {
  Tensor& y = operands.y;
  const std::int64_t filters = y.dim(1), places = places_of(y);
  if (!operands.bias.defined()) {
    if (operands.relu) relu_in_place(stream, y);
    return;
  }
  if (!operands.relu && places > 1) return add_bias(stream, operands.bias, places, y);
  const float* const bias = operands.bias.read();
  with_type(y.type(), [&](auto t) {
    using T = decltype(t);
    if (places == 1)
      map_rows(stream, y.dim(0), filters, LinearBiasAndRelu{bias, operands.relu}, 1, y.write<T>(), y.read<T>());
    else
      map_rows(stream, y.dim(0) * filters, places, BiasAndRelu{Divisor(filters), bias}, 1, y.write<T>(), y.read<T>());
  });
}

void relu_in_place(Stream& stream, Tensor& y) {
  with_type(y.type(), [&](auto t) {
    using T = decltype(t);
    map_elements(stream, y.size(), ReluForward{}, 1, y.write<T>(), y.read<T>());
  });
}

bool plans_do_epilogue_backward(const ConvPlan* of_input, const ConvPlan* of_weight, bool relu) {
  return of_weight != nullptr && of_weight->facts().fuses_epilogue_backward &&
         (of_input == nullptr || !relu || of_input->facts().fuses_epilogue_backward);
}

Tensor relu_and_bias_backward(Stream& stream, const Tensor& y, bool relu, bool wants_bias, Tensor& grad_y) {
  const std::int64_t batch = grad_y.dim(0), filters = grad_y.dim(1), places = places_of(grad_y);
  if (!relu) return wants_bias ? sum_over_channels(stream, grad_y, filters, places) : Tensor();
  Tensor passed(stream, grad_y.shape(), grad_y.type()), bias;
  with_type(grad_y.type(), [&](auto t) {
    using T = decltype(t);
    if (wants_bias && places > 1) {
      Tensor sums(stream, {batch, filters});
      map_and_sum_rows(stream, batch * filters, places, ReluBackward{}, passed.write<T>(), sums.write(), y.read<T>(),
                       grad_y.read<T>());
      bias = sum_over_channels(stream, sums, filters, 1);
    } else {
      map_elements(stream, y.size(), ReluBackward{}, 1, passed.write<T>(), y.read<T>(), grad_y.read<T>());
      if (wants_bias) bias = sum_over_channels(stream, passed, filters, 1);
    }
  });
  grad_y = passed;
  return bias;
}

}  // namespace twiddle
