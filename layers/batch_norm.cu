#include "layers/batch_norm.h"

#include <cmath>

#include "framework/for_each.h"
#include "framework/tensor_ops.h"

namespace twiddle {

namespace {

// All tensors are [batch, channels, inner]; one row is one channel of one image.
struct Plane {
  std::int64_t batch, channels, inner;
  TWIDDLE_HD std::int64_t rows() const { return batch * channels; }
  TWIDDLE_HD std::int64_t values() const { return batch * inner; }  // per channel
};

struct RowMoment {  // sums of (x - mean)^2, row by row: the second of two passes, which loses no digits
  Plane plane;
  const float *x, *mean;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const {
    const float difference = x[row * plane.inner + column] - mean[row % plane.channels];
    return difference * difference;
  }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

struct RowProduct {  // sums of grad_y (x - mean)
  Plane plane;
  const float *x, *mean, *grad_y;
  float* sums;
  TWIDDLE_HD float term(std::int64_t row, std::int64_t column) const {
    const std::int64_t i = row * plane.inner + column;
    return grad_y[i] * (x[i] - mean[row % plane.channels]);
  }
  TWIDDLE_HD void store(std::int64_t row, double sum) const { sums[row] = static_cast<float>(sum); }
};

struct Mean {
  float values;
  float* sum;
  TWIDDLE_HD void operator()(std::int64_t channel) const { sum[channel] /= values; }
};

// From a channel's sum of squares to 1 / deviation, and the running averages on the way. The running variance is the
// unbiased one, as in PyTorch.
struct Statistics {
  float values, momentum, epsilon;
  const float *mean, *squares;
  float *inverse, *running_mean, *running_var;
  TWIDDLE_HD void operator()(std::int64_t channel) const {
    inverse[channel] = 1 / sqrtf(squares[channel] / values + epsilon);
    const float unbiased = squares[channel] / (values > 1 ? values - 1 : 1);
    running_mean[channel] += momentum * (mean[channel] - running_mean[channel]);
    running_var[channel] += momentum * (unbiased - running_var[channel]);
  }
};

struct InverseDeviation {
  float epsilon;
  const float* variance;
  float* inverse;
  TWIDDLE_HD void operator()(std::int64_t channel) const { inverse[channel] = 1 / sqrtf(variance[channel] + epsilon); }
};

struct Normalize {
  Divisor channels;
  const float *mean, *inverse, *scale, *bias;
  struct Row {
    float middle, factor, shift;
    TWIDDLE_HD float operator()(std::int64_t, float x) const { return (x - middle) * factor + shift; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t channel = channels.remainder(row);
    return {mean[channel], inverse[channel] * scale[channel], bias[channel]};
  }
};

struct ScaleGradient {  // the sum of grad_y times the normalised x
  const float* inverse;
  float* product;
  TWIDDLE_HD void operator()(std::int64_t channel) const { product[channel] *= inverse[channel]; }
};

// grad_x = scale / deviation * (grad_y - mean(grad_y) - x' mean(grad_y x')), x' the normalised x.
struct Backward {
  Divisor channels;
  float values;  // per channel
  const float *mean, *inverse, *scale, *grad_bias, *grad_scale;
  struct Row {
    float middle, factor, share, slope;
    TWIDDLE_HD float operator()(std::int64_t, float x, float grad_y) const {
      return factor * (grad_y - share - (x - middle) * slope);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t channel = channels.remainder(row);
    return {mean[channel], inverse[channel] * scale[channel], grad_bias[channel] / values,
            grad_scale[channel] * inverse[channel] / values};
  }
};

// By running averages: each channel has one factor.
struct BackwardRunning {
  Divisor channels;
  const float *inverse, *scale;
  struct Row {
    float factor;
    TWIDDLE_HD float operator()(std::int64_t, float grad_y) const { return factor * grad_y; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t channel = channels.remainder(row);
    return {inverse[channel] * scale[channel]};
  }
};

Plane plane_of(const Tensor& x) {
  return {x.dim(0), x.dim(1), x.size() / (x.dim(0) * x.dim(1))};
}

template <class Op>
Tensor sum_rows_by_channel(Stream& stream, const Plane& plane, Op op) {
  Tensor row_sums(stream, {plane.rows()});
  op.sums = row_sums.write();
  reduce_rows(stream, plane.rows(), plane.inner, op);
  return sum_over_channels(stream, row_sums, plane.channels, 1);
}

Tensor normalized(Stream& stream, const Tensor& x, const Tensor& mean, const Tensor& inverse, const Tensor& scale,
                  const Tensor& bias) {
  const Plane plane = plane_of(x);
  Tensor y(stream, x.shape());
  map_rows(stream, plane.rows(), plane.inner,
           Normalize{Divisor(plane.channels), mean.read(), inverse.read(), scale.read(), bias.read()}, 1, y.write(),
           x.read());
  return y;
}

}  // namespace

BatchNorm::BatchNorm(const Site& site, Params& params)
    : Layer(site.name, site.input),
      momentum_(static_cast<float>(params.number("momentum", 0.1, 0, 1))),
      epsilon_(static_cast<float>(params.number("epsilon", 1e-5, 1e-12, 1))) {
  if (site.input.empty())
    throw Error(ErrorKind::config, join(params.owner(), " needs an input with channels, and gets a scalar"));
  const auto add = [&](const char* parameter_name, double initial, bool trainable) {
    Parameter parameter;
    parameter.name = parameter_name;
    parameter.shape = {site.input[0]};
    parameter.initializer = {Initializer::Kind::constant, initial};
    parameter.trainable = trainable;
    parameter.weight_decay = false;
    return &add_parameter(std::move(parameter));
  };
  scale_ = add("scale", 1, true);
  bias_ = add("bias", 0, true);
  running_mean_ = add("running_mean", 0, false);
  running_var_ = add("running_var", 1, false);
}

Variable BatchNorm::forward(Context& ctx, const Variable& x) {
  if (!ctx.training || frozen()) return forward_running(ctx, x);
  Stream& stream = *ctx.stream;
  const Tensor value = x.value();
  const Plane plane = plane_of(value);
  require(plane.values() > 1, "batch_norm '", name(),
          "' needs more than one value per channel to train: take a batch of two or more images");
  const auto values = static_cast<float>(plane.values());

  Tensor mean = sum_over_channels(stream, value, plane.channels, plane.inner);
  for_each_index(stream, plane.channels, Mean{values, mean.write()});
  const Tensor squares = sum_rows_by_channel(stream, plane, RowMoment{plane, value.read(), mean.read(), nullptr});
  Tensor inverse(stream, {plane.channels});
  for_each_index(stream, plane.channels,
                 Statistics{values, momentum_, epsilon_, mean.read(), squares.read(), inverse.write(),
                            running_mean_->variable.value().write(), running_var_->variable.value().write()});

  const Variable scale = scale_->variable, bias = bias_->variable;
  return ctx.tape.record(
      name(), normalized(stream, value, mean, inverse, scale.value(), bias.value()), {x, scale, bias},
      [x, value, mean, inverse, scale, bias, plane](Context& backward_ctx, const Tensor& grad_y) {
        Stream& back = *backward_ctx.stream;
        const Tensor grad_bias = sum_over_channels(back, grad_y, plane.channels, plane.inner);
        Tensor grad_scale =
            sum_rows_by_channel(back, plane, RowProduct{plane, value.read(), mean.read(), grad_y.read(), nullptr});
        for_each_index(back, plane.channels, ScaleGradient{inverse.read(), grad_scale.write()});
        if (x.needs_grad()) {
          Tensor grad_x(back, value.shape());
          const Backward backward{Divisor(plane.channels),
                                  static_cast<float>(plane.values()),
                                  mean.read(),
                                  inverse.read(),
                                  scale.value().read(),
                                  grad_bias.read(),
                                  grad_scale.read()};
          map_rows(back, plane.rows(), plane.inner, backward, 1, grad_x.write(), value.read(), grad_y.read());
          x.add_grad(backward_ctx, grad_x);
        }
        scale.add_grad(backward_ctx, grad_scale);
        bias.add_grad(backward_ctx, grad_bias);
      });
}

Variable BatchNorm::forward_running(Context& ctx, const Variable& x) {
  Tensor inverse(*ctx.stream, running_var_->shape);
  for_each_index(*ctx.stream, inverse.size(),
                 InverseDeviation{epsilon_, running_var_->variable.value().read(), inverse.write()});
  const Tensor scale = scale_->variable.value();
  const Tensor y =
      normalized(*ctx.stream, x.value(), running_mean_->variable.value(), inverse, scale, bias_->variable.value());
  const Plane plane = plane_of(y);
  return ctx.tape.record(name(), y, {x}, [x, inverse, scale, plane](Context& backward_ctx, const Tensor& grad_y) {
    Tensor grad_x(*backward_ctx.stream, grad_y.shape());
    map_rows(*backward_ctx.stream, plane.rows(), plane.inner,
             BackwardRunning{Divisor(plane.channels), inverse.read(), scale.read()}, 1, grad_x.write(), grad_y.read());
    x.add_grad(backward_ctx, grad_x);
  });
}

}  // namespace twiddle
