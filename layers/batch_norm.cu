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
template <bool Relu>
void normalize_with(Stream& stream, const Channels& channels, const Tensor& x, const Tensor& other, Tensor& y) {
  const BatchShape& planes = channels.planes;
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

MomentsOfImages moments_of_images(const BatchShape& planes, const Tensor& x, const Tensor& moments) {
  return {planes.channels, {static_cast<double>(planes.inner), moments.read()}, planes.inner == 1 ? x.read() : nullptr};
}

Tensor moments_of_planes(Stream& stream, const BatchShape& planes, const Tensor& x) {
  return planes.inner == 1 ? x : row_moments(stream, x, planes.rows(), planes.inner);
}

// The statistics of a batch, one image's planes after another.
void measure(Stream& stream, const Tensor& x, const ChannelForward& pass) {
  const BatchShape& planes = pass.planes;
  const Tensor moments = moments_of_planes(stream, planes, x);
  fold_rows(stream, planes.channels, planes.batch,
            Statistics<MomentsOfImages>{{}, moments_of_images(planes, x, moments), pass, nullptr});
}

// The statistics of the rows of all ranks, in the order of ranks: bitwise identical on each.
void measure_with_ranks(Context& ctx, const Tensor& x, const ChannelForward& pass, Tensor& count) {
  Stream& stream = *ctx.stream;
  const BatchShape& planes = pass.planes;
  const std::int64_t ranks = ctx.ranks->size(), share = 3 * planes.channels;
  Tensor all = Tensor::filled(stream, {ranks, planes.channels, 3}, 0);
  float* const own = all.write() + ctx.ranks->rank() * share;
  if (planes.batch > 0) {
    const Tensor moments = moments_of_planes(stream, planes, x);
    fold_rows(stream, planes.channels, planes.batch,
              MomentsForRanks{{}, moments_of_images(planes, x, moments), static_cast<float>(planes.batch), own});
  }
  ctx.ranks->all_gather(stream, all.write(), ranks * share);
  const MomentsOfRanks parts{planes.channels, static_cast<double>(planes.inner), all.read()};
  fold_rows(stream, planes.channels, ranks, Statistics<MomentsOfRanks>{{}, parts, pass, count.write()});
}

// Results of the backward pass: the gradient before the ReLU, which is also that of the other path's output, and those
// of x, if needed, and of the parameters.
struct Gradients {
  Tensor passed, x, scale, bias;
};

// `y` and `to.passed` are read and written if the gate is the output.
template <ReluGate gate>
void take_parameter_gradients(Stream& stream, const Channels& channels, const Tensor& x, const float* y,
                              const Tensor& grad_y, Gradients& to) {
  const BatchShape& planes = channels.planes;
  const auto [bias, scale] =
      sum_pairs_by_channel(stream, planes,
                           GradientTerms<gate>{channels.factors(), planes.inner, x.read(), y, grad_y.read(),
                                               y != nullptr ? to.passed.write() : nullptr});
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

template <bool Gated>
void take_input_gradient(Stream& stream, const Channels& channels, const Tensor& x, const ChannelSums& sums,
                         Gradients& to) {
  const BatchShape& planes = channels.planes;
  map_rows(stream, planes.rows(), planes.inner,
           Backward<Gated>{channels.factors(), sums.values, sums.gradients.read(), sums.products.read()}, 1,
           to.x.write(), x.read(), to.passed.read());
}

// `output` is defined if the gate is the output.
Gradients gradients(Context& ctx, const Channels& channels, ReluGate gate, const Tensor& x, const Tensor& output,
                    const Tensor& grad_y, bool of_x) {
  Stream& stream = *ctx.stream;
  const bool by_output = gate == ReluGate::output;
  const float* const y = by_output ? output.read() : nullptr;
  const Shape parameter{channels.planes.channels};
  Gradients all{by_output ? Tensor(stream, x.shape()) : grad_y, of_x ? Tensor(stream, x.shape()) : Tensor(),
                Tensor(stream, parameter), Tensor(stream, parameter)};
  const bool with_ranks = channels.count.defined();
  if (of_x && on_gpu(stream) && !with_ranks &&
      normalize_channels_backward_in_blocks(
          stream, {channels.planes, gate, x.read(), y, grad_y.read(), channels.mean.read(), channels.inverse.read(),
                   channels.scale.read(), channels.bias.read(), by_output ? all.passed.write() : nullptr,
                   all.scale.write(), all.bias.write(), all.x.write()}))
    return all;
  auto* const take = by_output                 ? &take_parameter_gradients<ReluGate::output>
                     : gate == ReluGate::input ? &take_parameter_gradients<ReluGate::input>
                                               : &take_parameter_gradients<ReluGate::none>;
  take(stream, channels, x, y, grad_y, all);
  const ChannelSums sums = with_ranks ? mean_of_ranks(ctx, channels.planes.channels, all, channels.count)
                                      : ChannelSums{all.bias, all.scale, static_cast<float>(channels.planes.values())};
  auto* const take_input = gate == ReluGate::input ? &take_input_gradient<true> : &take_input_gradient<false>;
  if (of_x) take_input(stream, channels, x, sums, all);
  return all;
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
  const Tensor given = x.value(), value = cast(stream, given, DType::f32);  // only `given` is kept
  const BatchShape planes = batch_shape_of(value);
  const bool with_ranks = syncs_with_ranks(ctx);
  require(with_ranks || planes.values() > 1, "batch_norm '", name(),
          "' needs more than one value per channel to train: use a batch of two or more images");
  const Variable scale = scale_->variable, bias = bias_->variable;
  Channels channels{
      planes, Tensor(stream, {planes.channels}), Tensor(stream, {planes.channels}), scale.value(), bias.value(), {}};
  if (with_ranks) channels.count = Tensor(stream, {planes.channels});
  const Tensor added = other != nullptr ? cast(stream, other->value(), DType::f32) : Tensor();
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
  const ReluGate gate = !relu_ ? ReluGate::none : other == nullptr ? ReluGate::input : ReluGate::output;
  const Tensor stored = cast(stream, y, output_type()), output = gate == ReluGate::output ? stored : Tensor();
  return ctx.tape.record(
      name(), stored, with_other({x, scale, bias}, other),
      [x, given, sum, output, channels, scale, bias, gate](Context& backward_ctx, const Tensor& grad_y) {
        Stream& in_backward = *backward_ctx.stream;
        const auto wide = [&](const Tensor& tensor) { return cast(in_backward, tensor, DType::f32); };
        const Gradients back =
            gradients(backward_ctx, channels, gate, wide(given), wide(output), wide(grad_y), x.needs_grad());
        sum.add_grad(backward_ctx, cast(in_backward, back.passed, given.type()));
        if (x.needs_grad()) x.add_grad(backward_ctx, cast(in_backward, back.x, given.type()));
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
  const DType type = x.value().type();
  const Tensor value = cast(stream, x.value(), DType::f32);
  const Tensor added = other != nullptr ? cast(stream, other->value(), DType::f32) : Tensor();
  Tensor y(stream, value.shape());
  normalize_with(stream, channels, value, added, relu_, y);
  const Variable sum = other != nullptr ? *other : Variable();
  const Tensor stored = cast(stream, y, output_type()), output = relu_ ? stored : Tensor();
  return ctx.tape.record(
      name(), stored, with_other({x}, other),
      [x, sum, output, channels, type](Context& backward_ctx, const Tensor& grad_y) {
        Stream& back = *backward_ctx.stream;
        const Tensor passed = output.defined() ? map_tensors(back, ReluBackward{}, 1, output, grad_y) : grad_y;
        sum.add_grad(backward_ctx, cast(back, passed, type));
        if (!x.needs_grad()) return;
        Tensor grad_x(back, grad_y.shape());
        map_rows(back, channels.planes.rows(), channels.planes.inner, BackwardByAverages{channels.factors()}, 1,
                 grad_x.write(), cast(back, passed, DType::f32).read());
        x.add_grad(backward_ctx, cast(back, grad_x, type));
      });
}

}  // namespace twiddle
