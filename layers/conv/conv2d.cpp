#include "layers/conv/conv2d.h"

#include <optional>
#include <utility>

#include "framework/config/params.h"
#include "framework/error.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/pad.h"

namespace twiddle {

Conv2d::Conv2d(const Site& site, const std::string& kind, TunedConvolution::Direction direction)
    : Layer(site.name, site.input), convolution_(site, kind, direction), input_(site.input) {}

Conv2d::Conv2d(const Site& site, Params& params) : Conv2d(site, params.owner(), TunedConvolution::Direction::plain) {
  const std::optional<ConvLayerOptions> options = read_conv_options(site, params, false);
  if (!options) return;
  ConvProblem problem;
  const auto [channels, height, width] = input_sizes(site, params);
  problem.channels = channels, problem.height = height, problem.width = width;
  problem.filters = options->filters;
  problem.bias = options->with_bias;
  options->put_window_into(problem);
  validate_for(params.owner(), problem);

  set_output_shape({problem.filters, problem.out_height(), problem.out_width()});
  const std::int64_t taps = std::int64_t(problem.kernel_h) * problem.kernel_w;
  define(problem, *options, problem.weight_shape(), problem.channels / problem.groups * taps,
         problem.filters / problem.groups * taps);
}

void Conv2d::define(const ConvProblem& problem, const ConvLayerOptions& options, const Shape& weight,
                    std::int64_t fan_in, std::int64_t fan_out) {
  weight_ = &add_parameter(options.weight(weight, fan_in, fan_out));
  if (options.with_bias) bias_ = &add_parameter(options.bias(fan_in, fan_out));
  convolution_.define(problem, options.engine, *weight_);
}

bool Conv2d::take_over_relu() {
  if (!convolution_.transposed()) convolution_.do_relu();
  return relu_ = true;
}

std::string Conv2d::describe() const {
  return describe_window(convolution_.of_one_image());
}

ConvOperands Conv2d::operands_of(const ConvProblem& here, ConvOperands layer) const {
  if (convolution_.transposed()) std::swap(layer.x, layer.y);
  return {.x = layer.x.reshaped(here.input_shape()),
          .w = layer.w.reshaped(here.weight_shape()),
          .y = layer.y.reshaped(here.output_shape()),
          .bias = layer.bias,
          .relu = layer.relu,
          .mask = layer.mask.defined() ? layer.mask.reshaped(here.output_shape()) : Tensor()};
}

Variable Conv2d::forward(Context& ctx, const Variable& given) {
  const Shape shape = given.value().shape(), expected = with_batch(shape.at(0), input_);
  require(shape == expected, name(), ": expects ", to_string(expected), ", got ", to_string(shape));
  const ConvProblem here = convolution_.problem(shape[0]);
  const bool transposed = convolution_.transposed();
  const bool extended = extra_[0] > 0 || extra_[1] > 0;
  const Variable x = extended ? pad_planes(ctx, name(), given, {0, extra_[0], 0, extra_[1]}) : given;

  // Chosen now: early in the step, memory is free for the trial runs.
  if (ctx.training && x.needs_grad()) convolution_.plan(ctx, here, ConvPass::backward_input);
  if (ctx.training && weight_->variable.needs_grad()) convolution_.plan(ctx, here, ConvPass::backward_weight);
  const Tensor input = x.value(), bias = bias_ ? bias_->variable.value() : Tensor();
  const Tensor y(*ctx.stream, with_batch(shape[0], output_shape()), output_type());
  ConvOperands operands = operands_of(here, {.x = input,
                                             .w = weight_->working(*ctx.stream, input.type()),
                                             .y = y,
                                             .bias = transposed ? Tensor() : bias,
                                             .relu = !transposed && relu_});
  convolution_.plan(ctx, here, ConvPass::forward).run(ctx, operands);
  if (transposed) {
    ConvOperands epilogue{.x = {}, .w = {}, .y = y, .bias = bias, .relu = relu_};
    add_bias_and_relu(*ctx.stream, epilogue);
  }

  std::vector<Variable> inputs{x, weight_->variable};
  if (bias_) inputs.push_back(bias_->variable);
  const Tensor output = relu_ ? y : Tensor();
  return ctx.tape.record(name(), y, inputs, [this, here, x, input, output](Context& context, const Tensor& grad_y) {
    backward(context, here, x, input, output, grad_y);
  });
}

void Conv2d::backward(Context& ctx, const ConvProblem& here, const Variable& x, const Tensor& input,
                      const Tensor& output, Tensor grad_y) {
  const auto plan_for = [&](const Variable& wanted, ConvPass pass) {
    return wanted.needs_grad() ? &convolution_.plan(ctx, here, pass) : nullptr;
  };
  const ConvPlan* const of_input = plan_for(x, ConvPass::backward_input);
  const ConvPlan* const of_weight = plan_for(weight_->variable, ConvPass::backward_weight);
  const bool wants_bias = bias_ && bias_->variable.needs_grad();
  // Those of a transposed one run other passes of the convolution, whose gradients the epilogue does not follow.
  const bool by_plans = !convolution_.transposed() && plans_do_epilogue_backward(of_input, of_weight, relu_);
  const Tensor mask = by_plans ? output : Tensor();
  Tensor bias_grad;
  if (by_plans && wants_bias) bias_grad = Tensor(*ctx.stream, {here.filters});
  if (!by_plans) {
    const ProfilerRange range(ctx.profiler, *ctx.stream, name(), "backward_bias");
    bias_grad = relu_and_bias_backward(*ctx.stream, output, relu_, wants_bias, grad_y);
  }
  // First the pass that needs w's spectrum, which the forward pass may have left: the other pass reuses its memory.
  if (of_input != nullptr) {
    const ProfilerRange range(ctx.profiler, *ctx.stream, name(), "backward_input");
    const Tensor grad_x(*ctx.stream, input.shape(), input.type());
    ConvOperands operands =
        operands_of(here, {.x = grad_x, .w = weight_->working(*ctx.stream, input.type()), .y = grad_y, .mask = mask});
    of_input->run(ctx, operands);
    x.add_grad(ctx, grad_x);
  }
  if (of_weight != nullptr) {
    const ProfilerRange range(ctx.profiler, *ctx.stream, name(), "backward_weight");
    const Tensor grad_w = weight_->variable.new_grad(*ctx.stream);
    ConvOperands operands = operands_of(
        here, {.x = input, .w = grad_w, .y = grad_y, .bias = by_plans ? bias_grad : Tensor(), .mask = mask});
    of_weight->run(ctx, operands);
    weight_->variable.add_grad(ctx, grad_w);
  }
  if (wants_bias) bias_->variable.add_grad(ctx, bias_grad);
}

}  // namespace twiddle
