#include "layers/batch_norm.h"

#include "framework/error.h"
#include "framework/ranks/communicator.h"
#include "layers/cuda/channel_blocks.h"
#include "layers/moments.h"
#include "layers/planes.h"
#include "layers/relu_functors.h"

namespace twiddle {

namespace {

// The moments of a channel in each image: of its plane, or of its number where a plane is but one.
struct MomentsOfImages {
  std::int64_t channels;
  RowMoments planes;
  const float* numbers;  // null: take the planes
  TWIDDLE_HD Moments of(std::int64_t channel, std::int64_t image) const {
    const std::int64_t row = image * channels + channel;
    return numbers != nullptr ? Moments{1, numbers[row], 0} : planes.of(row);
  }
};

// The moments of a channel on each rank, in three numbers: its images, and the mean and squared deviations of what they
// have in this channel.
struct MomentsOfRanks {
  std::int64_t channels;
  double inner;
  const float* values;
  TWIDDLE_HD Moments of(std::int64_t channel, std::int64_t rank) const {
    const float* const here = values + 3 * (rank * channels + channel);
    return {here[0] * inner, here[1], here[2]};
  }
};

// A channel's parts together.
template <class Parts>
struct JoinMoments {
  Parts parts;
  TWIDDLE_HD Moments start() const { return {0, 0, 0}; }
  TWIDDLE_HD Moments join(const Moments& a, const Moments& b) const { return joined(a, b); }
  TWIDDLE_HD Moments term(std::int64_t channel, std::int64_t part) const { return parts.of(channel, part); }
};

// As MomentsOfRanks has them.
struct MomentsForRanks : JoinMoments<MomentsOfImages> {
  float images;
  float* values;
  TWIDDLE_HD void store(std::int64_t channel, const Moments& all) const {
    float* const here = values + 3 * channel;
    here[0] = images;
    here[1] = static_cast<float>(all.mean);
    here[2] = static_cast<float>(all.deviations);
  }
};

// From moments to 1 / deviation, and the running averages on the way. The running variance is the unbiased one, as in
// PyTorch.
template <class Parts>
struct Statistics : JoinMoments<Parts> {
  float momentum, epsilon;
  float *mean, *inverse, *running_mean, *running_var;
  float* count;  // of values; null: nobody asks
  TWIDDLE_HD void store(std::int64_t channel, const Moments& all) const {
    const auto middle = static_cast<float>(all.mean);
    mean[channel] = middle;
    inverse[channel] = inverse_deviation(all, epsilon);
    const auto unbiased = static_cast<float>(all.deviations / (all.count > 1 ? all.count - 1 : 1));
    running_mean[channel] += momentum * (middle - running_mean[channel]);
    running_var[channel] += momentum * (unbiased - running_var[channel]);
    if (count != nullptr) count[channel] = static_cast<float>(all.count);
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

struct DivideByCount {  // both sums of each channel
  std::int64_t channels;
  const float* count;
  float* sums;
  TWIDDLE_HD void operator()(std::int64_t channel) const {
    sums[channel] /= count[channel];
    sums[channels + channel] /= count[channel];
  }
};

// grad_x = scale / deviation * (g - mean(g) - x' mean(g x')), x' the normalised x and g the gradient before the ReLU.
template <bool Gated>
struct Backward {
  Factors factors;
  float values;  // per channel, of what the sums are
  const float *gradient_sums, *product_sums;
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
    return {factors.of_row(row), gradient_sums[channel] / values,
            product_sums[channel] * factors.inverse[channel] / values};
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
  Tensor count;  // of values of all ranks, where these are their statistics; else undefined
  Factors factors() const { return {Divisor(planes.channels), mean.read(), inverse.read(), scale.read(), bias.read()}; }
};

// `other` is added where it is defined.
template <bool Relu>
void normalize_with(Stream& stream, const Channels& channels, const Tensor& x, const Tensor& other, Tensor& y) {
  const Planes& planes = channels.planes;
  const Normalize<Relu> functor{channels.factors()};
  if (other.defined())
    map_rows(stream, planes.rows(), planes.inner, functor, 1, y.write(), x.read(), other.read());
  else
    map_rows(stream, planes.rows(), planes.inner, functor, 1, y.write(), x.read());
}

void normalize_with(Stream& stream, const Channels& channels, const Tensor& x, const Tensor& other, bool relu,
                    Tensor& y) {
  auto* const run = relu ? &normalize_with<true> : &normalize_with<false>;
  run(stream, channels, x, other, y);
}

MomentsOfImages moments_of_images(const Planes& planes, const Tensor& x, const Tensor& moments) {
  return {planes.channels, {static_cast<double>(planes.inner), moments.read()}, planes.inner == 1 ? x.read() : nullptr};
}

Tensor moments_of_planes(Stream& stream, const Planes& planes, const Tensor& x) {
  return planes.inner == 1 ? x : row_moments(stream, x, planes.rows(), planes.inner);
}

template <class Parts>
Statistics<Parts> statistics_of(const Parts& parts, const ChannelForward& pass, float* count) {
  return {{parts}, pass.momentum, pass.epsilon, pass.mean, pass.inverse, pass.running_mean, pass.running_var, count};
}

// The statistics of a batch, one image's planes after another.
void measure(Stream& stream, const Tensor& x, const ChannelForward& pass) {
  const Planes& planes = pass.planes;
  const Tensor moments = moments_of_planes(stream, planes, x);
  fold_rows(stream, planes.channels, planes.batch, statistics_of(moments_of_images(planes, x, moments), pass, nullptr));
}

// The statistics of the rows of all ranks, in order of ranks: the same bits on each. Without rows x is undefined.
void measure_with_ranks(Context& ctx, const Tensor& x, const ChannelForward& pass, Tensor& count) {
  Stream& stream = *ctx.stream;
  const Planes& planes = pass.planes;
  const std::int64_t ranks = ctx.ranks->size(), share = 3 * planes.channels;
  Tensor all = Tensor::filled(stream, {ranks, planes.channels, 3}, 0);
  float* const own = all.write() + ctx.ranks->rank() * share;
  if (planes.batch > 0) {
    const Tensor moments = moments_of_planes(stream, planes, x);
    fold_rows(stream, planes.channels, planes.batch,
              MomentsForRanks{{moments_of_images(planes, x, moments)}, static_cast<float>(planes.batch), own});
  }
  ctx.ranks->gather_shares(stream, all.write(), ranks * share);
  const MomentsOfRanks parts{planes.channels, static_cast<double>(planes.inner), all.read()};
  fold_rows(stream, planes.channels, ranks, statistics_of(parts, pass, count.write()));
}

// What goes back: the gradient before the ReLU, which is that of another path's output as well, and those of x, where
// it is wanted, and of the parameters.
struct Gradients {
  Tensor passed, x, scale, bias;
};

template <class Gate>
void take_parameter_gradients(Stream& stream, const Channels& channels, const Tensor& x, const Gate& gate,
                              Gradients& to) {
  const Planes& planes = channels.planes;
  const auto [bias, scale] = sum_pairs_by_channel(
      stream, planes,
      GradientTerms<Gate>{gate, Divisor(planes.channels), planes.inner, x.read(), channels.mean.read()});
  to.bias = bias, to.scale = scale;
  for_each_index(stream, planes.channels, ScaleGradient{channels.inverse.read(), to.scale.write()});
}

// Of each channel, over so many values: the sums of the gradient, and of the gradient times x'.
struct ChannelSums {
  Tensor gradients, products;
  float values;
};

// Of all ranks, already divided by the number of values: 0 of one that has no rows.
ChannelSums mean_of_ranks(Context& ctx, std::int64_t channels, const Gradients& own, const Tensor& count) {
  Stream& stream = *ctx.stream;
  Tensor sums = Tensor::filled(stream, {2, channels}, 0);
  if (own.bias.defined()) stream.copy(sums.write(), own.bias.read(), own.bias.bytes());
  if (own.scale.defined()) stream.copy(sums.write() + channels, own.scale.read(), own.scale.bytes());
  ctx.ranks->sum(stream, sums.write(), sums.size());
  if (count.defined()) for_each_index(stream, channels, DivideByCount{channels, count.read(), sums.write()});
  return {sums.part(0, {channels}), sums.part(channels, {channels}), 1};
}

template <bool Gated>
void take_input_gradient(Stream& stream, const Channels& channels, const Tensor& x, const ChannelSums& sums,
                         Gradients& to) {
  const Planes& planes = channels.planes;
  map_rows(stream, planes.rows(), planes.inner,
           Backward<Gated>{channels.factors(), sums.values, sums.gradients.read(), sums.products.read()}, 1,
           to.x.write(), x.read(), to.passed.read());
}

// `output` is defined where it tells what the ReLU let through.
Gradients gradients(Context& ctx, const Channels& channels, bool relu, const Tensor& x, const Tensor& output,
                    const Tensor& grad_y, bool of_x) {
  Stream& stream = *ctx.stream;
  const bool by_output = output.defined(), by_input = relu && !by_output;
  const Shape parameter{channels.planes.channels};
  Gradients all{by_output ? Tensor(stream, x.shape()) : grad_y, of_x ? Tensor(stream, x.shape()) : Tensor(),
                Tensor(stream, parameter), Tensor(stream, parameter)};
  const bool with_ranks = channels.count.defined();
  if (of_x && on_gpu(stream) && !with_ranks &&
      normalize_channels_backward_in_blocks(
          stream, {channels.planes, relu, x.read(), by_output ? output.read() : nullptr, grad_y.read(),
                   channels.mean.read(), channels.inverse.read(), channels.scale.read(), channels.bias.read(),
                   by_output ? all.passed.write() : nullptr, all.scale.write(), all.bias.write(), all.x.write()}))
    return all;
  if (by_output)
    take_parameter_gradients(stream, channels, x, GateOfOutput{output.read(), grad_y.read(), all.passed.write()}, all);
  else if (by_input)
    take_parameter_gradients(stream, channels, x, GateOfInput{channels.factors(), grad_y.read()}, all);
  else
    take_parameter_gradients(stream, channels, x, NoGate{grad_y.read()}, all);
  const ChannelSums sums = with_ranks ? mean_of_ranks(ctx, channels.planes.channels, all, channels.count)
                                      : ChannelSums{all.bias, all.scale, static_cast<float>(channels.planes.values())};
  if (of_x && by_input) take_input_gradient<true>(stream, channels, x, sums, all);
  if (of_x && !by_input) take_input_gradient<false>(stream, channels, x, sums, all);
  return all;
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
      epsilon_(static_cast<float>(params.number("epsilon", 1e-5, 1e-12, 1))),
      sync_(params.flag("sync", false)) {
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
  const bool with_ranks = meets_ranks(ctx);
  require(with_ranks || planes.values() > 1, "batch_norm '", name(),
          "' needs more than one value per channel to train: take a batch of two or more images");
  const Variable scale = scale_->variable, bias = bias_->variable;
  Channels channels{
      planes, Tensor(stream, {planes.channels}), Tensor(stream, {planes.channels}), scale.value(), bias.value(), {}};
  if (with_ranks) channels.count = Tensor(stream, {planes.channels});
  const Tensor added = other != nullptr ? other->value() : Tensor();
  Tensor y(stream, value.shape());
  const ChannelForward pass{planes,
                            momentum_,
                            epsilon_,
                            relu_,
                            value.read(),
                            added.defined() ? added.read() : nullptr,
                            channels.scale.read(),
                            channels.bias.read(),
                            channels.mean.write(),
                            channels.inverse.write(),
                            running_mean_->variable.value().write(),
                            running_var_->variable.value().write(),
                            y.write()};
  if (with_ranks || !on_gpu(stream) || !normalize_channels_in_blocks(stream, pass)) {
    with_ranks ? measure_with_ranks(ctx, value, pass, channels.count) : measure(stream, value, pass);
    normalize_with(stream, channels, value, added, relu_, y);
  }
  const Variable sum = other != nullptr ? *other : Variable();
  const Tensor output = relu_ && other != nullptr ? y : Tensor();
  return ctx.tape.record(
      name(), y, with_other({x, scale, bias}, other),
      [x, value, sum, output, channels, scale, bias, relu = relu_](Context& backward_ctx, const Tensor& grad_y) {
        const Gradients back = gradients(backward_ctx, channels, relu, value, output, grad_y, x.needs_grad());
        sum.add_grad(backward_ctx, back.passed);
        if (x.needs_grad()) x.add_grad(backward_ctx, back.x);
        scale.add_grad(backward_ctx, back.scale);
        bias.add_grad(backward_ctx, back.bias);
      });
}

bool BatchNorm::meets_ranks(const Context& ctx) const {
  return sync_ && ctx.ranks != nullptr && ctx.training && !frozen();
}

// The running averages move here, too.
void BatchNorm::forward_without_rows(Context& ctx) {
  if (!meets_ranks(ctx)) return;
  const std::int64_t channels = output_shape()[0], inner = count_of(output_shape()) / channels;
  Tensor mean(*ctx.stream, {channels}), inverse(*ctx.stream, {channels}), count(*ctx.stream, {channels});
  ChannelForward pass{};
  pass.planes = {0, channels, inner};
  pass.momentum = momentum_, pass.epsilon = epsilon_;
  pass.mean = mean.write(), pass.inverse = inverse.write();
  pass.running_mean = running_mean_->variable.value().write();
  pass.running_var = running_var_->variable.value().write();
  measure_with_ranks(ctx, {}, pass, count);
}

void BatchNorm::backward_without_rows(Context& ctx) {
  if (meets_ranks(ctx)) mean_of_ranks(ctx, output_shape()[0], {}, {});
}

Variable BatchNorm::normalize_by_averages(Context& ctx, const Variable& x, const Variable* other) {
  Channels channels{planes_of(x.value()),     running_mean_->variable.value(), Tensor(*ctx.stream, running_var_->shape),
                    scale_->variable.value(), bias_->variable.value(),         {}};
  for_each_index(*ctx.stream, channels.planes.channels,
                 InverseDeviation{epsilon_, running_var_->variable.value().read(), channels.inverse.write()});
  Tensor y(*ctx.stream, x.value().shape());
  normalize_with(*ctx.stream, channels, x.value(), other != nullptr ? other->value() : Tensor(), relu_, y);
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
