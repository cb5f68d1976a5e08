#include "layers/batch_norm.h"

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/ranks/communicator.h"
#include "framework/tensor_ops.h"
#include "layers/batch_norm_functors.h"
#include "layers/cuda/channel_blocks.h"
#include "layers/elementwise.h"
#include "layers/planes.h"
#include "layers/relu_functors.h"

namespace twiddle {

namespace {

using namespace batch_norm;

// All that a pass needs to know of the channels.
struct Channels {
  BatchShape planes;
  Tensor mean, inverse, scale, bias;
  Tensor count;  // of values of all ranks, where these are their statistics; else undefined
  Factors factors() const { return {Divisor(planes.channels), mean.read(), inverse.read(), scale.read(), bias.read()}; }
};

// `other` is added where it is defined.
template <bool Relu, class T>
void normalize_with(Stream& stream, const Channels& channels, const Tensor& x, const Tensor& other, Tensor& y) {
  const BatchShape& planes = channels.planes;
  const Normalize<Relu> functor{channels.factors()};
  if (other.defined())
    map_rows(stream, planes.rows(), planes.inner, functor, 1, y.write<T>(), x.read<T>(), other.read<T>());
  else
    map_rows(stream, planes.rows(), planes.inner, functor, 1, y.write<T>(), x.read<T>());
}

void normalize_with(Stream& stream, const Channels& channels, const Tensor& x, const Tensor& other, bool relu,
                    Tensor& y) {
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    auto* const run = relu ? &normalize_with<true, T> : &normalize_with<false, T>;
    run(stream, channels, x, other, y);
  });
}

template <class T>
MomentsOfImages<T> moments_of_images(const BatchShape& planes, const Tensor& x, const Tensor& moments) {
  const RowMoments of_planes{static_cast<double>(planes.inner), moments.defined() ? moments.read() : nullptr};
  return {planes.channels, of_planes, moments.defined() ? nullptr : x.read<T>()};
}

// Undefined if planes are single numbers.
Tensor moments_of_planes(Stream& stream, const BatchShape& planes, const Tensor& x) {
  return planes.inner == 1 ? Tensor() : row_moments(stream, x, planes.rows(), planes.inner);
}

// The statistics of a batch, one image's planes after another.
void measure(Stream& stream, const BatchShape& planes, const Tensor& x, const ChannelStatistics& statistics) {
  const Tensor moments = moments_of_planes(stream, planes, x);
  with_type(x.type(), [&](auto t) {
    using Parts = MomentsOfImages<decltype(t)>;
    const Parts parts = moments_of_images<decltype(t)>(planes, x, moments);
    fold_rows(stream, planes.channels, planes.batch, Statistics<Parts>{{}, parts, statistics, nullptr});
  });
}

// The moments of this rank's rows, in the format of MomentsOfRanks.
void measure_own_rows(Stream& stream, const BatchShape& planes, const Tensor& x, float* own) {
  const Tensor moments = moments_of_planes(stream, planes, x);
  with_type(x.type(), [&](auto t) {
    using T = decltype(t);
    const MomentsOfImages<T> parts = moments_of_images<T>(planes, x, moments);
    fold_rows(stream, planes.channels, planes.batch,
              MomentsForRanks<T>{{}, parts, static_cast<float>(planes.batch), own});
  });
}

// The statistics of the rows of all ranks, in the order of ranks: bitwise identical on each.
void measure_with_ranks(Context& ctx, const BatchShape& planes, const Tensor& x, const ChannelStatistics& statistics,
                        Tensor& count) {
  Stream& stream = *ctx.stream;
  const std::int64_t ranks = ctx.ranks->size(), share = 3 * planes.channels;
  Tensor all = Tensor::filled(stream, {ranks, planes.channels, 3}, 0);
  if (planes.batch > 0) measure_own_rows(stream, planes, x, all.write() + ctx.ranks->rank() * share);
  ctx.ranks->all_gather(stream, all.write(), ranks * share);
  const MomentsOfRanks parts{planes.channels, static_cast<double>(planes.inner), all.read()};
  fold_rows(stream, planes.channels, ranks, Statistics<MomentsOfRanks>{{}, parts, statistics, count.write()});
}

// Results of the backward pass: the gradient before the ReLU, which is also that of the other path's output, and those
// of x, if needed, and of the parameters.
struct Gradients {
  Tensor passed, x, scale, bias;
};

// `y` and `to.passed` are read and written if the gate is the output.
template <ReluGate gate, class T>
void take_parameter_gradients(Stream& stream, const Channels& channels, const Tensor& x, const T* y,
                              const Tensor& grad_y, Gradients& to) {
  const BatchShape& planes = channels.planes;
  const auto [bias, scale] =
      sum_pairs_by_channel(stream, planes,
                           GradientTerms<gate, T>{channels.factors(), planes.inner, x.read<T>(), y, grad_y.read<T>(),
                                                  y != nullptr ? to.passed.write<T>() : nullptr});
  to.bias = bias, to.scale = scale;
  for_each_index(stream, planes.channels, ScaleGradient{channels.inverse.read(), to.scale.write()});
}

// Per channel, over `values` values: the sums of the gradient, and of the gradient times x'.
struct ChannelSums {
  Tensor gradients, products;
  float values;
};

// Sums over all ranks, already divided by the number of values.
ChannelSums mean_of_ranks(Context& ctx, std::int64_t channels, const Gradients& own, const Tensor& count) {
  Stream& stream = *ctx.stream;
  Tensor sums(stream, {2, channels});
  stream.copy(sums.write(), own.bias.read(), own.bias.bytes());
  stream.copy(sums.write() + channels, own.scale.read(), own.scale.bytes());
  ctx.ranks->all_reduce(stream, sums.write(), sums.size());
  for_each_index(stream, channels, DivideByCount{channels, count.read(), sums.write()});
  return {sums.part(0, {channels}), sums.part(channels, {channels}), 1};
}

template <bool Gated, class T>
void take_input_gradient(Stream& stream, const Channels& channels, const Tensor& x, const ChannelSums& sums,
                         Gradients& to) {
  const BatchShape& planes = channels.planes;
  map_rows(stream, planes.rows(), planes.inner,
           Backward<Gated>{channels.factors(), sums.values, sums.gradients.read(), sums.products.read()}, 1,
           to.x.write<T>(), x.read<T>(), to.passed.read<T>());
}

// `output` is defined if the gate is the output.
template <class T>
Gradients gradients(Context& ctx, const Channels& channels, ReluGate gate, const Tensor& x, const Tensor& output,
                    const Tensor& grad_y, bool of_x) {
  Stream& stream = *ctx.stream;
  const bool by_output = gate == ReluGate::output;
  const T* const y = by_output ? output.read<T>() : nullptr;
  const Shape parameter{channels.planes.channels};
  const DType type = dtype_of<T>;
  Gradients all{by_output ? Tensor(stream, x.shape(), type) : grad_y, of_x ? Tensor(stream, x.shape(), type) : Tensor(),
                Tensor(stream, parameter), Tensor(stream, parameter)};
  const bool with_ranks = channels.count.defined();
  if (of_x && on_gpu(stream) && !with_ranks &&
      normalize_channels_backward_in_blocks(
          stream, ChannelBackward<T>{channels.planes, gate, x.read<T>(), y, grad_y.read<T>(), channels.mean.read(),
                                     channels.inverse.read(), channels.scale.read(), channels.bias.read(),
                                     by_output ? all.passed.write<T>() : nullptr, all.scale.write(), all.bias.write(),
                                     all.x.write<T>()}))
    return all;
  auto* const take = by_output                 ? &take_parameter_gradients<ReluGate::output, T>
                     : gate == ReluGate::input ? &take_parameter_gradients<ReluGate::input, T>
                                               : &take_parameter_gradients<ReluGate::none, T>;
  take(stream, channels, x, y, grad_y, all);
  const ChannelSums sums = with_ranks ? mean_of_ranks(ctx, channels.planes.channels, all, channels.count)
                                      : ChannelSums{all.bias, all.scale, static_cast<float>(channels.planes.values())};
  auto* const take_input = gate == ReluGate::input ? &take_input_gradient<true, T> : &take_input_gradient<false, T>;
  if (of_x) take_input(stream, channels, x, sums, all);
  return all;
}

// y of a batch, with its statistics: in one pass, if a GPU's blocks hold a channel.
Tensor normalize_measured(Context& ctx, const Channels& channels, const ChannelStatistics& statistics, const Tensor& x,
                          const Tensor& other, bool relu) {
  Stream& stream = *ctx.stream;
  const BatchShape& planes = channels.planes;
  Tensor y(stream, x.shape(), x.type()), count = channels.count;
  const auto in_blocks = [&](auto t) {
    using T = decltype(t);
    return normalize_channels_in_blocks(
        stream, ChannelForward<T>{planes, statistics, relu, x.read<T>(), other.defined() ? other.read<T>() : nullptr,
                                  channels.scale.read(), channels.bias.read(), y.write<T>()});
  };
  const bool with_ranks = count.defined();
  if (!with_ranks && on_gpu(stream) && with_type(x.type(), in_blocks)) return y;
  with_ranks ? measure_with_ranks(ctx, planes, x, statistics, count) : measure(stream, planes, x, statistics);
  normalize_with(stream, channels, x, other, relu, y);
  return y;
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
  const Tensor value = x.value(), added = other != nullptr ? other->value() : Tensor();
  const BatchShape planes = batch_shape_of(value);
  const bool with_ranks = syncs_with_ranks(ctx);
  require(with_ranks || planes.values() > 1, "batch_norm '", name(),
          "' needs more than one value per channel to train: use a batch of two or more images");
  const Variable scale = scale_->variable, bias = bias_->variable;
  Channels channels{
      planes, Tensor(stream, {planes.channels}), Tensor(stream, {planes.channels}), scale.value(), bias.value(), {}};
  if (with_ranks) channels.count = Tensor(stream, {planes.channels});
  const ChannelStatistics statistics{momentum_,
                                     epsilon_,
                                     channels.mean.write(),
                                     channels.inverse.write(),
                                     running_mean_->variable.value().write(),
                                     running_var_->variable.value().write()};
  const Tensor y = normalize_measured(ctx, channels, statistics, value, added, relu_);
  const Variable sum = other != nullptr ? *other : Variable();
  const ReluGate gate = !relu_ ? ReluGate::none : other == nullptr ? ReluGate::input : ReluGate::output;
  const Tensor output = gate == ReluGate::output ? y : Tensor();
  return ctx.tape.record(
      name(), y, with_other({x, scale, bias}, other),
      [x, value, sum, output, channels, scale, bias, gate](Context& backward_ctx, const Tensor& grad_y) {
        const Gradients back = with_type(value.type(), [&](auto t) {
          return gradients<decltype(t)>(backward_ctx, channels, gate, value, output, grad_y, x.needs_grad());
        });
        sum.add_grad(backward_ctx, back.passed);
        if (x.needs_grad()) x.add_grad(backward_ctx, back.x);
        scale.add_grad(backward_ctx, back.scale);
        bias.add_grad(backward_ctx, back.bias);
      });
}

bool BatchNorm::syncs_with_ranks(const Context& ctx) const {
  return sync_ && ctx.ranks != nullptr && ctx.training && !frozen();
}

Variable BatchNorm::normalize_by_averages(Context& ctx, const Variable& x, const Variable* other) {
  Stream& stream = *ctx.stream;
  Channels channels{batch_shape_of(x.value()), running_mean_->variable.value(), Tensor(stream, running_var_->shape),
                    scale_->variable.value(),  bias_->variable.value(),         {}};
  for_each_index(stream, channels.planes.channels,
                 InverseDeviation{epsilon_, running_var_->variable.value().read(), channels.inverse.write()});
  const Tensor value = x.value(), added = other != nullptr ? other->value() : Tensor();
  Tensor y(stream, value.shape(), value.type());
  normalize_with(stream, channels, value, added, relu_, y);
  const Variable sum = other != nullptr ? *other : Variable();
  const Tensor output = relu_ ? y : Tensor();
  return ctx.tape.record(
      name(), y, with_other({x}, other), [x, sum, output, channels](Context& backward_ctx, const Tensor& grad_y) {
        Stream& back = *backward_ctx.stream;
        const Tensor passed = output.defined() ? map_tensors(back, ReluBackward{}, 1, output, grad_y) : grad_y;
        sum.add_grad(backward_ctx, passed);
        if (!x.needs_grad()) return;
        Tensor grad_x(back, passed.shape(), passed.type());
        with_type(passed.type(), [&](auto t) {
          using T = decltype(t);
          map_rows(back, channels.planes.rows(), channels.planes.inner, BackwardByAverages{channels.factors()}, 1,
                   grad_x.write<T>(), passed.read<T>());
        });
        x.add_grad(backward_ctx, grad_x);
      });
}

}  // namespace twiddle
