#include "layers/batch_norm.h"

#include "framework/error.h"
#include "layers/moments.h"
#include "layers/planes.h"
#include "layers/relu_functors.h"

namespace twiddle {

namespace {

// From the moments of a channel's planes, or of its numbers where a plane is but one, to 1 / deviation, and the running
// averages on the way. The running variance is the unbiased one, as in PyTorch.
struct Statistics {
  std::int64_t channels;
  RowMoments planes;
  const float* numbers;  // null: take the planes
  float momentum, epsilon;
  float *mean, *inverse, *running_mean, *running_var;
  TWIDDLE_HD Moments start() const { return {0, 0, 0}; }
  TWIDDLE_HD Moments join(const Moments& a, const Moments& b) const { return joined(a, b); }
  TWIDDLE_HD Moments term(std::int64_t channel, std::int64_t image) const {
    const std::int64_t row = image * channels + channel;
    return numbers != nullptr ? Moments{1, numbers[row], 0} : planes.of(row);
  }
  TWIDDLE_HD void store(std::int64_t channel, const Moments& all) const {
    const auto middle = static_cast<float>(all.mean);
    mean[channel] = middle;
    inverse[channel] = inverse_deviation(all, epsilon);
    const auto unbiased = static_cast<float>(all.deviations / (all.count > 1 ? all.count - 1 : 1));
    running_mean[channel] += momentum * (middle - running_mean[channel]);
    running_var[channel] += momentum * (unbiased - running_var[channel]);
  }
};

struct InverseDeviation {
  float epsilon;
  const float* variance;
  float* inverse;
  TWIDDLE_HD void operator()(std::int64_t channel) const {
    inverse[channel] = inverse_deviation(variance[channel], epsilon);
  }
};

// What is known of each channel.
struct Factors {
  Divisor channels;
  const float *mean, *inverse, *scale, *bias;
  struct Channel {
    float middle, factor, shift;
    TWIDDLE_HD float operator()(float x) const { return (x - middle) * factor + shift; }
  };
  TWIDDLE_HD std::int64_t channel(std::int64_t row) const { return channels.remainder(row); }
  TWIDDLE_HD Channel of_row(std::int64_t row) const {
    const std::int64_t c = channel(row);
    return {mean[c], inverse[c] * scale[c], bias[c]};
  }
};

// With the ReLU that follows, and with another path's output.
template <bool Relu>
struct Normalize {
  Factors factors;
  struct Row {
    Factors::Channel normalized;
    TWIDDLE_HD static float passed(float y) { return Relu ? ReluForward{}(y) : y; }
    TWIDDLE_HD float operator()(std::int64_t, float x) const { return passed(normalized(x)); }
    TWIDDLE_HD float operator()(std::int64_t, float x, float other) const { return passed(normalized(x) + other); }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {factors.of_row(row)}; }
};

// The gradient before the ReLU, of which there are three kinds: there is none; it is made of x alone, whose result is
// computed again, which reads less than the result would; or another path's output was added, and the result tells. In
// the last case what passed is written down, for that path and the pass that follows. A gate has a function for each
// row, whose first element is number `first`, which takes the column and x there.
struct NoGate {
  const float* grad_y;
  struct Row {
    const float* grad_y;
    TWIDDLE_HD float operator()(std::int64_t column, float) const { return grad_y[column]; }
  };
  TWIDDLE_HD Row row(std::int64_t, std::int64_t first) const { return {grad_y + first}; }
};

struct GateOfInput {
  Factors factors;
  const float* grad_y;
  struct Row {
    Factors::Channel normalized;
    const float* grad_y;
    TWIDDLE_HD float operator()(std::int64_t column, float x) const {
      return ReluBackward{}(normalized(x), grad_y[column]);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row, std::int64_t first) const { return {factors.of_row(row), grad_y + first}; }
};

struct GateOfOutput {
  const float *y, *grad_y;
  float* passed;
  struct Row {
    const float *y, *grad_y;
    float* passed;
    TWIDDLE_HD float operator()(std::int64_t column, float) const {
      return passed[column] = ReluBackward{}(y[column], grad_y[column]);
    }
  };
  TWIDDLE_HD Row row(std::int64_t, std::int64_t first) const { return {y + first, grad_y + first, passed + first}; }
};

// What an element adds to its channel's sums of the gradient, and of the gradient times (x - mean).
template <class Gate>
struct GradientTerms {
  Gate gate;
  Divisor channels;
  std::int64_t inner;
  const float *x, *mean;
  struct Row {
    typename Gate::Row gate;
    float middle;
    const float* x;
    TWIDDLE_HD PairOf<float> operator()(std::int64_t column) const {
      const float here = x[column], gradient = gate(column, here);
      return {gradient, gradient * (here - middle)};
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t first = row * inner;
    return {gate.row(row, first), mean[channels.remainder(row)], x + first};
  }
};

struct ScaleGradient {  // the sum of the gradient times the normalised x
  const float* inverse;
  float* product;
  TWIDDLE_HD void operator()(std::int64_t channel) const { product[channel] *= inverse[channel]; }
};

// grad_x = scale / deviation * (g - mean(g) - x' mean(g x')), x' the normalised x and g the gradient before the ReLU.
template <bool Gated>
struct Backward {
  Factors factors;
  float values;  // per channel
  const float *grad_bias, *grad_scale;
  struct Row {
    Factors::Channel normalized;
    float share, slope;
    TWIDDLE_HD float operator()(std::int64_t, float x, float grad_y) const {
      const float g = Gated ? ReluBackward{}(normalized(x), grad_y) : grad_y;
      return normalized.factor * (g - share - (x - normalized.middle) * slope);
    }
  };
  TWIDDLE_HD Row row(std::int64_t row) const {
    const std::int64_t channel = factors.channel(row);
    return {factors.of_row(row), grad_bias[channel] / values, grad_scale[channel] * factors.inverse[channel] / values};
  }
};

// By running averages: each channel has one factor.
struct BackwardByAverages {
  Factors factors;
  struct Row {
    float factor;
    TWIDDLE_HD float operator()(std::int64_t, float grad_y) const { return factor * grad_y; }
  };
  TWIDDLE_HD Row row(std::int64_t row) const { return {factors.of_row(row).factor}; }
};

// All that a pass needs to know of the channels.
struct Channels {
  Planes planes;
  Tensor mean, inverse, scale, bias;
  Factors factors() const { return {Divisor(planes.channels), mean.read(), inverse.read(), scale.read(), bias.read()}; }
};

// `other` is added where it is defined.
template <bool Relu>
Tensor normalized(Stream& stream, const Channels& channels, const Tensor& x, const Tensor& other) {
  const Planes& planes = channels.planes;
  Tensor y(stream, x.shape());
  const Normalize<Relu> functor{channels.factors()};
  if (other.defined())
    map_rows(stream, planes.rows(), planes.inner, functor, 1, y.write(), x.read(), other.read());
  else
    map_rows(stream, planes.rows(), planes.inner, functor, 1, y.write(), x.read());
  return y;
}

Tensor normalized(Stream& stream, const Channels& channels, const Tensor& x, const Variable* other, bool relu) {
  const Tensor added = other != nullptr ? other->value() : Tensor();
  return relu ? normalized<true>(stream, channels, x, added) : normalized<false>(stream, channels, x, added);
}

template <class Gate>
std::array<Tensor, 2> gradient_sums(Stream& stream, const Channels& channels, const Tensor& x, const Gate& gate) {
  const Planes& planes = channels.planes;
  return sum_pairs_by_channel(
      stream, planes,
      GradientTerms<Gate>{gate, Divisor(planes.channels), planes.inner, x.read(), channels.mean.read()});
}

template <bool Gated>
Tensor input_gradient(Stream& stream, const Channels& channels, const Tensor& x, const Tensor& grad_y,
                      const Tensor& grad_bias, const Tensor& grad_scale) {
  const Planes& planes = channels.planes;
  Tensor grad_x(stream, x.shape());
  map_rows(
      stream, planes.rows(), planes.inner,
      Backward<Gated>{channels.factors(), static_cast<float>(planes.values()), grad_bias.read(), grad_scale.read()}, 1,
      grad_x.write(), x.read(), grad_y.read());
  return grad_x;
}

Tensor passed_by_relu(Stream& stream, const Tensor& y, const Tensor& grad_y) {
  Tensor passed(stream, y.shape());
  map_elements(stream, y.size(), ReluBackward{}, 1, passed.write(), y.read(), grad_y.read());
  return passed;
}

std::vector<Variable> with_other(std::vector<Variable> inputs, const Variable* other) {
  if (other != nullptr) inputs.push_back(*other);
  return inputs;
}

}  // namespace

BatchNorm::BatchNorm(const Site& site, Params& params)
    : Layer(site.name, site.input),
      momentum_(static_cast<float>(params.number("momentum", 0.1, 0, 1))),
      epsilon_(static_cast<float>(params.number("epsilon", 1e-5, 1e-12, 1))) {
  require_channels(site, params);
  const auto add = [&](const char* parameter_name, double start, bool trainable) {
    Parameter parameter = undecayed(parameter_name, {site.input[0]}, start);
    parameter.trainable = trainable;
    return &add_parameter(std::move(parameter));
  };
  scale_ = add("scale", 1, true);
  bias_ = add("bias", 0, true);
  running_mean_ = add("running_mean", 0, false);
  running_var_ = add("running_var", 1, false);
}

Variable BatchNorm::normalize(Context& ctx, const Variable& x, const Variable* other) {
  return ctx.training && !frozen() ? normalize_by_batch(ctx, x, other) : normalize_by_averages(ctx, x, other);
}

Variable BatchNorm::normalize_by_batch(Context& ctx, const Variable& x, const Variable* other) {
  Stream& stream = *ctx.stream;
  const Tensor value = x.value();
  const Planes planes = planes_of(value);
  require(planes.values() > 1, "batch_norm '", name(),
          "' needs more than one value per channel to train: take a batch of two or more images");
  const Variable scale = scale_->variable, bias = bias_->variable;
  Channels channels{planes, Tensor(stream, {planes.channels}), Tensor(stream, {planes.channels}), scale.value(),
                    bias.value()};
  const bool single = planes.inner == 1;
  const Tensor moments = single ? value : row_moments(stream, value, planes.rows(), planes.inner);
  fold_rows(stream, planes.channels, planes.batch,
            Statistics{planes.channels,
                       {static_cast<double>(planes.inner), moments.read()},
                       single ? value.read() : nullptr,
                       momentum_,
                       epsilon_,
                       channels.mean.write(),
                       channels.inverse.write(),
                       running_mean_->variable.value().write(),
                       running_var_->variable.value().write()});

  const Tensor y = normalized(stream, channels, value, other, relu_);
  const Variable sum = other != nullptr ? *other : Variable();
  const Tensor output = relu_ && other != nullptr ? y : Tensor();
  return ctx.tape.record(
      name(), y, with_other({x, scale, bias}, other),
      [x, value, sum, output, channels, scale, bias, relu = relu_](Context& backward_ctx, const Tensor& grad_y) {
        Stream& back = *backward_ctx.stream;
        const bool by_output = output.defined(), by_input = relu && !by_output;
        Tensor passed = by_output ? Tensor(back, output.shape()) : grad_y;
        const auto sums = [&](const auto& gate) { return gradient_sums(back, channels, value, gate); };
        auto [grad_bias, grad_scale] = by_output  ? sums(GateOfOutput{output.read(), grad_y.read(), passed.write()})
                                       : by_input ? sums(GateOfInput{channels.factors(), grad_y.read()})
                                                  : sums(NoGate{grad_y.read()});
        sum.add_grad(backward_ctx, passed);
        for_each_index(back, channels.planes.channels, ScaleGradient{channels.inverse.read(), grad_scale.write()});
        if (x.needs_grad())
          x.add_grad(backward_ctx, by_input
                                       ? input_gradient<true>(back, channels, value, passed, grad_bias, grad_scale)
                                       : input_gradient<false>(back, channels, value, passed, grad_bias, grad_scale));
        scale.add_grad(backward_ctx, grad_scale);
        bias.add_grad(backward_ctx, grad_bias);
      });
}

Variable BatchNorm::normalize_by_averages(Context& ctx, const Variable& x, const Variable* other) {
  Channels channels{planes_of(x.value()), running_mean_->variable.value(), Tensor(*ctx.stream, running_var_->shape),
                    scale_->variable.value(), bias_->variable.value()};
  for_each_index(*ctx.stream, channels.planes.channels,
                 InverseDeviation{epsilon_, running_var_->variable.value().read(), channels.inverse.write()});
  const Tensor y = normalized(*ctx.stream, channels, x.value(), other, relu_);
  const Variable sum = other != nullptr ? *other : Variable();
  const Tensor output = relu_ ? y : Tensor();
  return ctx.tape.record(name(), y, with_other({x}, other),
                         [x, sum, output, channels](Context& backward_ctx, const Tensor& grad_y) {
                           Stream& back = *backward_ctx.stream;
                           const Tensor passed = output.defined() ? passed_by_relu(back, output, grad_y) : grad_y;
                           sum.add_grad(backward_ctx, passed);
                           if (!x.needs_grad()) return;
                           Tensor grad_x(back, grad_y.shape());
                           map_rows(back, channels.planes.rows(), channels.planes.inner,
                                    BackwardByAverages{channels.factors()}, 1, grad_x.write(), passed.read());
                           x.add_grad(backward_ctx, grad_x);
                         });
}

}  // namespace twiddle
