#include "tests/support/conv_problem.h"

#include <sstream>

#include "framework/error.h"
#include "layers/conv/conv_check.h"
#include "layers/conv/engines.h"
#include "layers/conv/trial.h"
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
