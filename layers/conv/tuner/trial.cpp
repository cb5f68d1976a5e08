#include "layers/conv/tuner/trial.h"

#include <fmt/format.h>

#include <limits>

#include "framework/context.h"
#include "framework/error.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/conv/pass_arrays.h"

namespace twiddle {

namespace {

// Groups of 250 large or small elements show the error within 5 %, so that plans close to the limits of 16 bits are not
// rejected at random.
int samples_of(const ConvProblem& problem) {
  return storage_of(problem.precision) == DType::f32 ? 200 : 1000;
}

void renew(ConvOperands& operands) {
  for (Tensor* tensor : {&operands.x, &operands.w, &operands.y})
    with_type(tensor->type(), [&](auto t) { tensor->write<decltype(t)>(); });
}

Tensor zeros(Stream& stream, const ConvProblem& problem) {
  return Tensor::filled(stream, {problem.filters}, 0);
}

// What stands for y of the forward pass: half of it above zero.
Tensor random_output(Stream& stream, const ConvProblem& problem) {
  return random_operands(stream, problem, ConvPass::backward_input).y;
}

}  // namespace

PassTrial::PassTrial(Context& ctx, const ConvProblem& problem, ConvPass pass)
    : ctx_(ctx),
      pass_(pass),
      problem_(problem),
      operands_(random_operands(*ctx.stream, problem, pass)),
      result_(result_of(pass, operands_)),
      check_(*ctx.stream, problem, pass, operands_, samples_of(problem)) {}

ConvOperands& PassTrial::with_epilogue(const ConvPlan& plan) {
  const bool fused = plan.facts().fuses_epilogue_backward, forward = pass_ == ConvPass::forward;
  std::optional<ConvOperands>& operands = fused ? masked_ : unmasked_;
  if (operands) return *operands;
  operands = operands_;
  operands->relu = forward && problem_.relu;
  if (problem_.bias && (forward || (fused && pass_ == ConvPass::backward_weight)))
    operands->bias = zeros(*ctx_.stream, problem_);
  if (problem_.relu && fused && !forward) operands->mask = random_output(*ctx_.stream, problem_);
  return *operands;
}

double PassTrial::error(const ConvPlan& plan) {
  fill_with_nan(*ctx_.stream, result_);
  plan.run(ctx_, operands_);
  return check_.error(*ctx_.stream, result_);
}

bool PassTrial::spreads_nan(const ConvPlan& plan) {
  Stream& stream = *ctx_.stream;
  const PassPlaces places = places_of(problem_, pass_);
  for (const bool rows : {true, false}) {
    const PlaceOf& place = rows ? places.row : places.column;
    const PlaceOf& of_result = rows ? places.result_row : places.result_column;
    if (place.count < 2) continue;
    ConvOperands operands = operands_;
    Tensor& factor = rows ? (pass_ == ConvPass::forward ? operands.x : operands.y)
                          : (pass_ == ConvPass::backward_weight ? operands.x : operands.w);
    factor = with_nan_at(stream, factor, place, place.count / 2);
    plan.run(ctx_, operands);
    if (holds_nan_elsewhere(stream, result_, of_result, place.count / 2)) return true;
  }
  return false;
}

std::string PassTrial::why_not(const ConvPlan& plan, double& found) {
  found = error(plan);
  if (!(found <= promise(problem_.precision, pass_)))
    return fmt::format("misses {} with an error of {:.1e}", to_string(problem_.precision), found);
  return plan.facts().vendor && spreads_nan(plan)
             ? "misses what it promises: a NaN in one image or filter reaches others"
             : "";
}

void PassTrial::run(const ConvPlan& plan) {
  ConvOperands& operands = with_epilogue(plan);
  renew(operands);
  plan.run(ctx_, operands);
}

Measurement measure(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, ConvPass pass,
                    double budget_ms) try {
  PassTrial trial(ctx, problem, pass);
  const double error = trial.error(plan);
  trial.run(plan);
  return {sample_calls(*ctx.stream, budget_ms, [&] { trial.run(plan); }), error, {}};
} catch (const Error& error) {
  return {{}, std::numeric_limits<double>::infinity(), error.what()};
}

StepTrial::StepTrial(Context& ctx, const ConvProblem& problem)
    : ctx_(ctx),
      problem_(problem),
      forward_(random_operands(*ctx.stream, problem, ConvPass::forward)),
      input_(random_operands(*ctx.stream, problem, ConvPass::backward_input)),
      weight_{forward_.x, Tensor(*ctx.stream, problem.weight_shape()), input_.y} {
  input_.w = forward_.w;
  forward_.relu = problem.relu;
  if (problem.bias) forward_.bias = zeros(*ctx.stream, problem), bias_gradient_ = zeros(*ctx.stream, problem);
}

StepTimes StepTrial::time(const StepPlans& plans, double budget_ms) {
  Stream& stream = *ctx_.stream;
  const auto& [of_forward, of_input, of_weight] = plans;
  const bool by_plans = plans_do_epilogue_backward(of_input.get(), of_weight.get(), problem_.relu);
  const bool apart = of_weight != nullptr && !by_plans && (problem_.bias || problem_.relu);
  input_.mask = weight_.mask = by_plans && problem_.relu ? forward_.y : Tensor();
  weight_.bias = by_plans ? bias_gradient_ : Tensor();
  const auto pass = [&](const std::shared_ptr<const ConvPlan>& plan, ConvOperands& operands) {
    if (plan != nullptr) plan->run(ctx_, operands);
  };
  const std::vector<Work> parts{[&] {
                                  renew(forward_), renew(weight_), renew(input_);
                                  pass(of_forward, forward_);
                                },
                                [&] {
                                  Tensor gradient = input_.y;
                                  if (apart)
                                    relu_and_bias_backward(stream, forward_.y, problem_.relu, problem_.bias, gradient);
                                },
                                [&] { pass(of_input, input_); }, [&] { pass(of_weight, weight_); }};
  for (const Work& part : parts) part();  // plans, allocates, warms up
  const std::vector<double> times = time_parts(stream, budget_ms, parts);
  const auto of = [](const std::shared_ptr<const ConvPlan>& plan, double time) { return plan != nullptr ? time : 0; };
  return {{of(of_forward, times[0]), of(of_input, times[2]), of(of_weight, times[3])}, apart ? times[1] : 0};
}

double StepTrial::time_epilogue(double budget_ms) {
  if (!problem_.bias && !problem_.relu) return 0;
  const Work work = [&] {
    Tensor gradient = input_.y;
    relu_and_bias_backward(*ctx_.stream, forward_.y, problem_.relu, problem_.bias, gradient);
  };
  work();
  return time_calls(*ctx_.stream, budget_ms, work);
}

}  // namespace twiddle
