#include "layers/scale.h"

#include "framework/config/params.h"
#include "layers/planes.h"

namespace twiddle {

namespace {

struct Multiply {  // by the factor of a row's channel
  Divisor channels;
  const float* scale;
  struct Row {
    float factor;
    TWIDDLE_HD float operator()(std::int64_t, float x) const { return x * factor; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {scale[channels.remainder(row)]}; }
};

struct Product {  // what a number adds to the gradient of its channel's factor
  std::int64_t inner;
  const float *x, *grad_y;
  TWIDDLE_HD float operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * inner + column;
    return x[i] * grad_y[i];
  }
};

Tensor scaled(Stream& stream, const BatchShape& planes, const Tensor& x, const Tensor& scale) {
  Tensor y(stream, x.shape());
  map_rows(stream, planes.rows(), planes.inner, Multiply{Divisor(planes.channels), scale.read()}, 1, y.write(),
           x.read());
  return y;
}

}  // namespace

Scale::Scale(const Site& site, Params& params) : Layer(site.name, site.input) {
  const double start = params.number("init", 1, -1e6, 1e6);
  require_channels(site, params);
  scale_ = &add_parameter(undecayed("scale", {site.input[0]}, start));
}

Variable Scale::forward(Context& ctx, const Variable& x) {
  const Tensor value = x.value();
  const Variable scale = scale_->variable;
  const BatchShape planes = batch_shape_of(value);
  return ctx.tape.record(name(), scaled(*ctx.stream, planes, value, scale.value()), {x, scale},
                         [x, value, scale, planes](Context& backward_ctx, const Tensor& grad_y) {
                           Stream& stream = *backward_ctx.stream;
                           if (x.needs_grad()) x.add_grad(backward_ctx, scaled(stream, planes, grad_y, scale.value()));
                           if (scale.needs_grad())
                             scale.add_grad(
                                 backward_ctx,
                                 sum_by_channel(stream, planes, Product{planes.inner, value.read(), grad_y.read()}));
                         });
}

}  // namespace twiddle
