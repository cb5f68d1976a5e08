#include "layers/conv/conv2d.h"

#include <limits>

#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/epilogue.h"
#include "layers/conv/tuner.h"

namespace twiddle {

namespace {

constexpr int largest_option = 1 << 20;

// validate's words, under the layer's kind.
void check(const ConvProblem& problem) {
  try {
    validate(problem);
  } catch (const Error& error) {
    throw Error(error.kind(), std::string("conv2d: ") + error.what());
  }
}

}  // namespace

Conv2d::Conv2d(const Site& site, Params& params) : Layer(site.name, site.input), tuner_(site.convolutions) {
  const std::size_t errors = params.diagnostics().size();
  problem_.filters = static_cast<int>(params.integer("filters", {}, 1, largest_option));
  const auto kernel = params.pair("kernel", {}, 1, largest_option);
  const auto stride = params.pair("stride", {{1, 1}}, 1, largest_option);
  const auto pad = params.pair("pad", {{0, 0}}, 0, largest_option);
  problem_.kernel_h = kernel[0], problem_.kernel_w = kernel[1];
  problem_.stride_h = stride[0], problem_.stride_w = stride[1];
  problem_.pad_h = pad[0], problem_.pad_w = pad[1];
  problem_.dilation = static_cast<int>(params.integer("dilation", 1, 1, largest_option));
  problem_.groups = static_cast<int>(params.integer("groups", 1, 1, largest_option));
  problem_.precision = tuner_.policy().precision;
  problem_.input_gradient = site.input_gradient;
  problem_.bias = params.flag("bias", true);
  engine_ = params.text("engine", "");
  const Initializer weight_start = read_initializer(params, "init", {Initializer::Kind::he, 0});
  const Initializer bias_start = read_initializer(params, "bias_init", {Initializer::Kind::constant, 0});
  const auto weight_rate = static_cast<float>(params.number("lr", 1, 0, 1e6));
  const auto bias_rate = static_cast<float>(params.number("bias_lr", 1, 0, 1e6));
  try {
    if (!engine_.empty()) tuner_.check_name(engine_);
  } catch (const Error& error) {
    params.error("engine", error.what());
  }
  if (params.diagnostics().size() > errors) return;  // sizes that were not understood fit nothing

  if (site.input.size() != 3)
    throw Error(ErrorKind::config,
                "conv2d: needs an input of channels x height x width, gets " + to_string(site.input));
  const auto size = [&](int axis) {
    if (site.input[axis] > std::numeric_limits<int>::max())
      throw Error(ErrorKind::config, "conv2d: the input " + to_string(site.input) + " is too large");
    return static_cast<int>(site.input[axis]);
  };
  problem_.channels = size(0), problem_.height = size(1), problem_.width = size(2);
  check(problem_);

  set_output_shape({problem_.filters, problem_.out_height(), problem_.out_width()});
  const std::int64_t taps = std::int64_t(problem_.kernel_h) * problem_.kernel_w;
  const std::int64_t fan_in = problem_.channels / problem_.groups * taps;
  const std::int64_t fan_out = problem_.filters / problem_.groups * taps;
  weight_ = &add_parameter({.name = "weight",
                            .shape = problem_.weight_shape(),
                            .initializer = weight_start,
                            .fan_in = fan_in,
                            .fan_out = fan_out,
                            .learning_rate = weight_rate});
  if (!problem_.bias) return;
  bias_ = &add_parameter({.name = "bias",
                          .shape = {problem_.filters},
                          .initializer = bias_start,
                          .fan_in = fan_in,
                          .fan_out = fan_out,
                          .weight_decay = false,
                          .learning_rate = bias_rate});
}

ConvProblem Conv2d::problem(std::int64_t batch) const {
  if (batch < 1 || batch > std::numeric_limits<int>::max())
    throw Error(ErrorKind::config, join("conv2d: a batch of ", batch, " images is impossible"));
  ConvProblem problem = problem_;
  problem.batch = static_cast<int>(batch);
  problem.weight_gradient = weight_->trainable;
  check(problem);
  return problem;
}

std::string Conv2d::describe() const {
  const ConvProblem& p = problem_;
  std::string text = join(p.kernel_h, "x", p.kernel_w);
  if (p.stride_h > 1 || p.stride_w > 1) text += ", stride " + format_sides(p.stride_h, p.stride_w);
  if (p.pad_h > 0 || p.pad_w > 0) text += ", pad " + format_sides(p.pad_h, p.pad_w);
  if (p.dilation > 1) text += join(", dilation ", p.dilation);
  if (p.groups > 1) text += join(", groups ", p.groups);
  return text;
}

// The first time in each batch size the tuner is asked.
const ConvPlan& Conv2d::plan(Context& ctx, const ConvProblem& here, ConvPass pass) {
  Plan& plan = plans_[{here.batch, ctx.training}][static_cast<std::size_t>(pass)];
  if (plan == nullptr) plan = tuner_.choose(ctx, here, pass, engine_).plan;
  return *plan;
}

Variable Conv2d::forward(Context& ctx, const Variable& x) {
  const Shape& shape = x.value().shape();
  require(shape.size() == 4, name(), ": a batch of ",
          to_string(Shape{problem_.channels, problem_.height, problem_.width}), " images is expected, got ",
          to_string(shape));
  const ConvProblem here = problem(shape[0]);
  require(shape == here.input_shape(), name(), ": expects ", to_string(here.input_shape()), ", got ", to_string(shape));

  ConvOperands operands{x.value(), weight_->variable.value(), Tensor(*ctx.stream, here.output_shape()),
                        bias_ ? bias_->variable.value() : Tensor(), problem_.relu};
  // Chosen now, while the step holds little and a rehearsal finds room.
  if (ctx.training && x.needs_grad()) plan(ctx, here, ConvPass::backward_input);
  if (ctx.training && weight_->variable.needs_grad()) plan(ctx, here, ConvPass::backward_weight);
  plan(ctx, here, ConvPass::forward).run(ctx, operands);
  std::vector<Variable> inputs{x, weight_->variable};
  if (bias_) inputs.push_back(bias_->variable);
  const Tensor input = x.value(), output = problem_.relu ? operands.y : Tensor();
  return ctx.tape.record(name(), operands.y, inputs,
                         [this, here, x, input, output](Context& context, const Tensor& grad_y) {
                           backward(context, here, x, input, output, grad_y);
                         });
}

void Conv2d::backward(Context& ctx, const ConvProblem& here, const Variable& x, const Tensor& input,
                      const Tensor& output, Tensor grad_y) {
  const auto plan_for = [&](const Variable& wanted, ConvPass pass) {
    return wanted.needs_grad() ? &plan(ctx, here, pass) : nullptr;
  };
  const ConvPlan* const of_input = plan_for(x, ConvPass::backward_input);
  const ConvPlan* const of_weight = plan_for(weight_->variable, ConvPass::backward_weight);
  const bool wants_bias = bias_ && bias_->variable.needs_grad();
  const bool by_plans = plans_do_way_back(of_input, of_weight, problem_.relu);
  const Tensor mask = by_plans ? output : Tensor();
  Tensor bias_grad;
  if (by_plans && wants_bias) bias_grad = Tensor(*ctx.stream, {here.filters});
  if (!by_plans) {
    const ProfilerRange range(ctx.profiler, *ctx.stream, name(), "backward_bias");
    bias_grad = relu_and_bias_backward(*ctx.stream, output, problem_.relu, wants_bias, grad_y);
  }
  // First the pass that needs w's spectrum, which may be there from the forward pass: the other's result takes its
  // room.
  if (of_input != nullptr) {
    const ProfilerRange range(ctx.profiler, *ctx.stream, name(), "backward_input");
    ConvOperands operands{
        .x = Tensor(*ctx.stream, here.input_shape()), .w = weight_->variable.value(), .y = grad_y, .mask = mask};
    of_input->run(ctx, operands);
    x.add_grad(ctx, operands.x);
  }
  if (of_weight != nullptr) {
    const ProfilerRange range(ctx.profiler, *ctx.stream, name(), "backward_weight");
    ConvOperands operands{.x = input,
                          .w = Tensor(*ctx.stream, here.weight_shape()),
                          .y = grad_y,
                          .bias = by_plans ? bias_grad : Tensor(),
                          .mask = mask};
    of_weight->run(ctx, operands);
    weight_->variable.add_grad(ctx, operands.w);
  }
  if (wants_bias) bias_->variable.add_grad(ctx, bias_grad);
}

}  // namespace twiddle
