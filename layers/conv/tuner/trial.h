#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "layers/conv/tuner/conv_check.h"
#include "layers/conv/tuner/timing.h"

namespace twiddle {

// The plans of a problem's three passes, by pass; null: the pass is not run.
using StepPlans = std::array<std::shared_ptr<const ConvPlan>, 3>;
constexpr std::size_t index_of(ConvPass pass) {
  return static_cast<std::size_t>(pass);
}

// One pass on random operands (what a layer happens to hold can be kind to an algorithm: on activations that are
// all positive cuDNN's Winograd errs by 2e-6, on numbers around zero by 1e-5) in the types that a layer stores, for any
// number of plans: how exact each is, and how fast with the problem's epilogue. What it throws is what the plan throws,
// or OutOfMemory.
class PassTrial {
 public:
  PassTrial(Context& ctx, const ConvProblem& problem, ConvPass pass);
  // Relative, against a sample summed in double; NaN where elements are left unwritten. Warms the plan up.
  double error(const ConvPlan& plan);
  // Whether a NaN in one image, filter or channel reaches results that do not depend on it.
  bool spreads_nan(const ConvPlan& plan);
  // Returns why the plan is rejected: its error exceeds the limit (written to `error`), or a library's plan spreads
  // NaN; empty: it is accepted.
  std::string why_not(const ConvPlan& plan, double& error);
  // Runs it, as the layer will, on operands that are new each time: nothing kept from the call before holds.
  void run(const ConvPlan& plan);

 private:
  ConvOperands& with_epilogue(const ConvPlan& plan);

  Context& ctx_;
  ConvPass pass_;
  ConvProblem problem_;
  ConvOperands operands_;
  std::optional<ConvOperands> masked_, unmasked_;  // with the epilogue, for plans that mask and for others
  Tensor result_;
  ConvCheck check_;
};

// How fast and how exact a plan is.
struct Measurement {
  Timing timing = {};   // of a few runs, each on new operands, with the problem's epilogue
  double error = 0;     // of a sample; NaN where elements were left unwritten
  std::string failure;  // what it threw; then the error is infinite
  double milliseconds() const { return timing.quantile(0); }  // the least
};
Measurement measure(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, ConvPass pass,
                    double budget_ms = 50);

// Milliseconds of a training step's passes.
struct StepTimes {
  std::array<double, 3> passes{};
  double epilogue = 0;  // of the backward pass of bias and ReLU, where plans do not do it
  double total() const { return passes[0] + passes[1] + passes[2] + epilogue; }
};

// The passes in the order in which a layer runs them, on the same x, w and gradient, which are new in each step.
class StepTrial {
 public:
  StepTrial(Context& ctx, const ConvProblem& problem);
  StepTimes time(const StepPlans& plans, double budget_ms);
  double time_epilogue(double budget_ms);  // alone

 private:
  Context& ctx_;
  ConvProblem problem_;
  ConvOperands forward_, input_, weight_;
  Tensor bias_gradient_;
};

}  // namespace twiddle
