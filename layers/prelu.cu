#include "layers/prelu.h"

#include "framework/config/params.h"
#include "layers/planes.h"

namespace twiddle {

namespace {

struct PReluForward {
  Divisor channels;
  const float* slope;
  struct Row {
    float slope;
    TWIDDLE_HD float operator()(std::int64_t, float x) const { return (x > 0 ? 1 : slope) * x; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {slope[channels.remainder(row)]}; }
};

struct PReluBackward {
  Divisor channels;
  const float* slope;
  struct Row {
    float slope;
    TWIDDLE_HD float operator()(std::int64_t, float x, float grad_y) const { return (x > 0 ? 1 : slope) * grad_y; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {slope[channels.remainder(row)]}; }
};

struct SlopeTerm {  // what an element adds to the gradient of its channel's slope
  std::int64_t inner;
  const float *x, *grad_y;
  TWIDDLE_HD float operator()(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * inner + column;
    return x[i] > 0 ? 0 : x[i] * grad_y[i];
  }
};

}  // namespace

PRelu::PRelu(const Site& site, Params& params) : Layer(site.name, site.input) {
  const double start = params.number("init", 0.25, -1e3, 1e3);
  require_channels(site, params);
  slope_ = &add_parameter(undecayed("slope", {site.input[0]}, start));
}

Variable PRelu::forward(Context& ctx, const Variable& x) {
  const Tensor value = x.value();
  const Variable slope = slope_->variable;
  const BatchShape planes = batch_shape_of(value);
  Tensor y(*ctx.stream, value.shape());
  map_rows(*ctx.stream, planes.rows(), planes.inner, PReluForward{Divisor(planes.channels), slope.value().read()}, 1,
           y.write(), value.read());
  return ctx.tape.record(name(), y, {x, slope}, [x, value, slope, planes](Context& backward_ctx, const Tensor& grad_y) {
    Stream& stream = *backward_ctx.stream;
    if (slope.needs_grad())
      slope.add_grad(backward_ctx,
                     sum_by_channel(stream, planes, SlopeTerm{planes.inner, value.read(), grad_y.read()}));
    if (!x.needs_grad()) return;
    Tensor grad_x(stream, value.shape());
    map_rows(stream, planes.rows(), planes.inner, PReluBackward{Divisor(planes.channels), slope.value().read()}, 1,
             grad_x.write(), value.read(), grad_y.read());
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
