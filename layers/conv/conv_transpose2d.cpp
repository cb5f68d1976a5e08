#include "layers/conv/conv_transpose2d.h"

#include <algorithm>
#include <limits>

#include "framework/config/params.h"
#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/conv_options.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/pad.h"

namespace twiddle {

namespace {

// How large an axis becomes; checked, since options may be as large as a million.
int grown(int size, int axis, const ConvOptions& options) {
  const auto i = static_cast<std::size_t>(axis);
  const std::int64_t reach = std::int64_t(options.dilation) * (options.kernel[i] - 1);
  const std::int64_t out = (std::int64_t(size) - 1) * options.stride[i] - 2 * std::int64_t(options.pad[i]) + reach +
                           options.output_pad[i] + 1;
  return static_cast<int>(std::clamp<std::int64_t>(out, 0, std::numeric_limits<int>::max()));
}

// The convolution that goes the other way: from the layer's output to its input.
ConvProblem the_other_way(const Site& site, const Params& params, const ConvOptions& options) {
  const auto [channels, height, width] = input_sizes(site, params);
  const auto refuse = [&](const std::string& why) { throw Error(ErrorKind::config, params.owner() + ": " + why); };
  for (const auto& [what, count] : {std::pair("channels", channels), std::pair("filters", options.filters)})
    if (count % options.groups != 0)
      refuse(join(count, " ", what, " cannot be split into ", options.groups, " equal groups"));
  for (std::size_t i = 0; i < 2; ++i)
    if (options.output_pad[i] >= std::max(options.stride[i], options.dilation))
      refuse(join("'output_pad' ", format_sides(options.output_pad[0], options.output_pad[1]),
                  " must be smaller than the stride ", format_sides(options.stride[0], options.stride[1]),
                  " or the dilation ", options.dilation));
  ConvProblem problem;
  options.put_window_into(problem);
  problem.filters = channels, problem.channels = options.filters;
  problem.height = grown(height, 0, options), problem.width = grown(width, 1, options);
  if (problem.height < 1 || problem.width < 1)
    refuse(join("nothing is left of the input ", height, "x", width, " with kernel ", describe_window(problem)));
  validate_for(params.owner(), problem);
  return problem;
}

}  // namespace

ConvTranspose2d::ConvTranspose2d(const Site& site, Params& params)
    : Layer(site.name, site.input), convolution_(site, params.owner(), TunedConvolution::Direction::transposed) {
  const std::optional<ConvOptions> options = read_conv_options(site, params, true);
  if (!options) return;
  const ConvProblem problem = the_other_way(site, params, *options);
  output_pad_ = options->output_pad;
  for (std::size_t i = 0; i < 2; ++i) extra_[i] = output_pad_[i] / options->stride[i];
  set_output_shape({problem.channels, problem.height, problem.width});
  // Of the kernel's taps one in stride_h stride_w meets an output.
  const std::int64_t taps = std::int64_t(problem.kernel_h) * problem.kernel_w;
  const std::int64_t strides = std::int64_t(problem.stride_h) * problem.stride_w;
  const std::int64_t fan_in = problem.filters / problem.groups * std::max<std::int64_t>(taps / strides, 1);
  const std::int64_t fan_out = problem.channels / problem.groups * taps;
  weight_ = &add_parameter(options->weight(problem.weight_shape(), fan_in, fan_out));
  if (options->with_bias) bias_ = &add_parameter(options->bias(fan_in, fan_out));
  convolution_.define(problem, options->engine, *weight_);
}

std::string ConvTranspose2d::describe() const {
  const auto [height, width] = output_pad_;
  return describe_window(convolution_.of_one_image()) +
         (height > 0 || width > 0 ? ", output pad " + format_sides(height, width) : "");
}

Variable ConvTranspose2d::forward(Context& ctx, const Variable& given) {
  Stream& stream = *ctx.stream;
  const Shape shape = given.value().shape();
  require(shape.size() == 4, name(), ": expects images of channels x height x width, got ", to_string(shape));
  const ConvProblem here = convolution_.problem(shape[0]);
  Shape expected = here.output_shape();
  expected[2] -= extra_[0], expected[3] -= extra_[1];
  require(shape == expected, name(), ": expects ", to_string(expected), ", got ", to_string(shape));
  const bool extended = extra_[0] > 0 || extra_[1] > 0;
  const Variable x = extended ? pad_planes(ctx, name(), given, {0, extra_[0], 0, extra_[1]}) : given;
  const Tensor input = x.value();

  // Chosen now, while the step holds little and a rehearsal finds room.
  if (ctx.training && x.needs_grad()) convolution_.plan(ctx, here, ConvPass::backward_input);
  if (ctx.training && weight_->variable.needs_grad()) convolution_.plan(ctx, here, ConvPass::backward_weight);
  ConvOperands operands{.x = Tensor(stream, here.input_shape()), .w = weight_->variable.value(), .y = input};
  convolution_.plan(ctx, here, ConvPass::forward).run(ctx, operands);
  const Tensor y = operands.x;
  ConvOperands epilogue{Tensor(), Tensor(), y, bias_ ? bias_->variable.value() : Tensor(), relu_};
  add_bias_and_relu(stream, epilogue);

  std::vector<Variable> inputs{x, weight_->variable};
  if (bias_) inputs.push_back(bias_->variable);
  const Tensor output = relu_ ? y : Tensor();
  return ctx.tape.record(name(), y, inputs, [this, here, x, input, output](Context& back, const Tensor& grad_y) {
    backward(back, here, x, input, output, grad_y);
  });
}

void ConvTranspose2d::backward(Context& ctx, const ConvProblem& here, const Variable& x, const Tensor& input,
                               const Tensor& output, Tensor grad_y) {
  Stream& stream = *ctx.stream;
  const bool wants_bias = bias_ && bias_->variable.needs_grad();
  Tensor bias_grad;
  {
    const ProfilerRange range(ctx.profiler, stream, name(), "backward_bias");
    bias_grad = relu_and_bias_backward(stream, output, relu_, wants_bias, grad_y);
  }
  if (wants_bias) bias_->variable.add_grad(ctx, bias_grad);
  if (x.needs_grad()) {
    const ProfilerRange range(ctx.profiler, stream, name(), "backward_input");
    ConvOperands operands{.x = grad_y, .w = weight_->variable.value(), .y = Tensor(stream, here.output_shape())};
    convolution_.plan(ctx, here, ConvPass::backward_input).run(ctx, operands);
    x.add_grad(ctx, operands.y);
  }
  if (weight_->variable.needs_grad()) {
    const ProfilerRange range(ctx.profiler, stream, name(), "backward_weight");
    ConvOperands operands{.x = grad_y, .w = weight_->variable.new_grad(stream), .y = input};
    convolution_.plan(ctx, here, ConvPass::backward_weight).run(ctx, operands);
    weight_->variable.add_grad(ctx, operands.w);
  }
}

}  // namespace twiddle
