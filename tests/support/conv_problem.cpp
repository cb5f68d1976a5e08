#include "tests/support/conv_problem.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "framework/context.h"
#include "framework/error.h"
#include "framework/random.h"
#include "framework/tensor_ops.h"
#include "layers/conv/engines/engines.h"
#include "layers/conv/tuner/conv_check.h"
#include "layers/conv/tuner/trial.h"
#include "tests/support/limits.h"

namespace twiddle {

namespace {

// "3", or "3x4": height and width.
void read_pair(std::istringstream& in, int& height, int& width) {
  char x = 0;
  in >> height;
  width = height;
  if (in.peek() == 'x') in >> x >> width;
}

}  // namespace

ConvProblem conv_problem(const std::string& text) {
  ConvProblem problem;
  std::istringstream in(text);
  int channels_a_group = 0;
  char sign = 0;
  in >> problem.batch >> sign >> problem.channels >> sign >> problem.height >> sign >> problem.width >> sign;
  in >> problem.filters >> sign >> channels_a_group >> sign >> problem.kernel_h >> sign >> problem.kernel_w;
  for (std::string key; in >> key;) {
    if (key == "stride") read_pair(in, problem.stride_h, problem.stride_w);
    if (key == "pad") read_pair(in, problem.pad_h, problem.pad_w);
    if (key == "dilation") in >> problem.dilation;
    if (key == "groups") in >> problem.groups;
  }
  require(to_string(problem) == text, "'", text, "' was read as '", to_string(problem), "'");
  return problem;
}

std::vector<ConvProblem> conv_problems(const std::vector<std::string>& texts) {
  std::vector<ConvProblem> problems;
  for (const std::string& text : texts) problems.push_back(conv_problem(text));
  return problems;
}

Shape shape_of(const ConvProblem& problem, ConvOperand operand) {
  return operand == ConvOperand::x   ? problem.input_shape()
         : operand == ConvOperand::w ? problem.weight_shape()
                                     : problem.output_shape();
}

const Tensor& written(ConvPass pass, const ConvOperands& operands) {
  return pass == ConvPass::forward ? operands.y : pass == ConvPass::backward_input ? operands.x : operands.w;
}

std::shared_ptr<const ConvPlan> first_plan(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
  const ConvPlans plans = engine.plans(problem, pass, 1);
  if (plans.empty()) throw Error(join(engine.name(), " has no plan for ", to_string(pass), " of ", to_string(problem)));
  return plans.front();
}

std::shared_ptr<const ConvPlan> holding_plan(Context& ctx, const ConvEngine& engine, const ConvProblem& problem,
                                             ConvPass pass) {
  const ConvPlans plans = engine.plans(problem, pass);
  if (plans.empty() || plans.front()->facts().exact) return plans.empty() ? nullptr : plans.front();
  PassTrial trial(ctx, problem, pass);
  double error = 0;
  for (const auto& plan : plans)
    if (trial.why_not(*plan, error).empty()) return plan;
  return nullptr;
}

std::size_t scratch_bytes(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
  return first_plan(engine, problem, pass)->facts().scratch_bytes;
}

double conv_error(Context& ctx, const ConvProblem& problem, ConvPass pass, const ConvOperands& operands, int samples) {
  const Tensor& result = written(pass, operands);
  if (ctx.stream->device().kind != Device::Kind::cpu)
    return ConvCheck(*ctx.stream, problem, pass, operands, samples).error(*ctx.stream, result);
  if (holds_nan(*ctx.stream, result)) return std::numeric_limits<double>::quiet_NaN();
  const auto in_f32 = [&](const Tensor& tensor) { return cast(*ctx.stream, tensor, DType::f32); };
  const Tensor of_x = in_f32(operands.x), of_w = in_f32(operands.w), of_y = in_f32(operands.y);
  const float *const x = of_x.read(), *const w = of_w.read(), *const y = of_y.read();
  const float* const values = pass == ConvPass::forward ? y : pass == ConvPass::backward_input ? x : w;
  const float* const bias = operands.bias.defined() ? operands.bias.read() : nullptr;
  const std::int64_t count = result.size(), taken = std::min<std::int64_t>(samples, count);

  std::vector<std::int64_t> places(static_cast<std::size_t>(taken));
  std::vector<float> found(places.size());
  std::vector<double> expected(places.size());
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t i = 0; i < taken; ++i) {
    // Samples one element of each of `taken` equal ranges, at a different offset in each, so that no stride goes
    // untested.
    const std::int64_t begin = i * count / taken, end = (i + 1) * count / taken;
    const std::int64_t index = begin + RandomSequence{1}.below(i, end - begin);
    const auto at = static_cast<std::size_t>(i);
    places[at] = index, found[at] = values[index];
    expected[at] = conv_reference(problem, pass, x, w, y, bias, index);
  }
  return relative_error(problem, pass, places, found, expected);
}

double plan_error(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, ConvPass pass) {
  ConvOperands operands = random_operands(*ctx.stream, problem, pass);
  if (pass == ConvPass::forward) operands.bias = Tensor::filled(*ctx.stream, {problem.filters}, 0.5f);
  plan.run(ctx, operands);
  return conv_error(ctx, problem, pass, operands, all_samples);
}

void run(const ConvEngine& engine, Context& ctx, const ConvProblem& problem, ConvPass pass, ConvOperands& operands) {
  first_plan(engine, problem, pass)->run(ctx, operands);
}

}  // namespace twiddle
