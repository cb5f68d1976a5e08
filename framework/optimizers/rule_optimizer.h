#pragma once
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <vector>

#include "framework/config/params.h"
#include "framework/context.h"
#include "framework/error.h"
#include "framework/optimizers/optimizer.h"
#include "framework/optimizers/update_parameters.h"
#include "framework/parameter.h"
#include "framework/text.h"

namespace twiddle {

// "0.9" for 0.9f, which as a double has more digits.
inline std::string format_option(float value) {
  char digits[32] = "";
  std::to_chars(std::begin(digits), std::end(digits), value);
  return format_number(std::strtod(digits, nullptr));
}

// A rule with numbers that depend on how many steps its parameter has had. correct(t, numbers) computes
// Rule::correction_count of them, once for each parameter and step.
template <class Rule>
concept CountsSteps = requires(Rule rule) {
  rule.corrections;
};

// Counts a step of each parameter, so that one without a gradient for a while is corrected rightly. On the device,
// where a captured step continues to count. Exact up to 2^24 steps.
template <class Rule>
struct CountSteps {
  static constexpr int most = 128;
  StepPointers numbers;
  Rule rule;
  float* corrections;
  float* steps[most];
  TWIDDLE_HD void operator()(std::int64_t i) const {
    if (numbers.passes()) rule.correct(*steps[i] += 1, corrections + Rule::correction_count * i);
  }
};

// The optimizer that updates each element by a rule. A Rule derives from UpdateRule, reads its options in a constructor
// from Params, and has a `kind` (its name in configs) and describe(), which follows that name in messages.
template <class Rule>
class RuleOptimizer final : public Optimizer {
 public:
  explicit RuleOptimizer(Params& params) : rule_(params) {}
  explicit RuleOptimizer(const Rule& rule) : rule_(rule) {}

  std::string kind() const override { return Rule::kind; }
  std::string describe() const override {
    return join(Rule::kind, rule_.describe(), rule_.decay > 0 ? ", weight decay " + format_option(rule_.decay) : "");
  }
  std::vector<std::string> state_names() const override { return {Rule::states.begin(), Rule::states.end()}; }

  void step(Context& ctx, std::vector<Parameter*>& parameters, const StepNumbers& numbers) override {
    Stream& stream = *ctx.stream;
    std::vector<Parameter*> moving;
    for (Parameter* parameter : parameters)
      if (parameter->trainable && parameter->variable.grad().defined()) moving.push_back(parameter);

    Tensor corrections;
    if constexpr (CountsSteps<Rule>) corrections = count_steps(stream, moving, numbers);
    std::vector<Update<Rule>> updates;
    for (Parameter* parameter : moving) {
      Rule rule = rule_;
      rule.rate = parameter->learning_rate;
      if (!parameter->weight_decay) rule.decay = 0;
      if constexpr (CountsSteps<Rule>) rule.corrections = corrections.read() + Rule::correction_count * updates.size();
      Tensor& weight = parameter->variable.value();
      Update<Rule> update{rule, weight.size(), parameter->variable.grad().read(), weight.write(), {}};
      float** state = update.state;
      for (const char* name : Rule::states) *state++ = state_of(stream, name, *parameter).write();
      updates.push_back(update);
    }
    update_parameters(stream, updates, numbers);
  }

 private:
  // The corrections of each parameter, [parameters, Rule::correction_count].
  Tensor count_steps(Stream& stream, const std::vector<Parameter*>& parameters, const StepNumbers& numbers) {
    const auto count = static_cast<std::int64_t>(parameters.size());
    Tensor corrections(stream, {count, Rule::correction_count});
    std::vector<float*> steps;  // all allocated before the first is counted: running out of memory changes nothing
    for (const Parameter* parameter : parameters)
      steps.push_back(state_.at(stream, "steps." + parameter->name, {1}).write());
    for (std::int64_t begin = 0; begin < count; begin += CountSteps<Rule>::most) {
      CountSteps<Rule> counting{StepPointers(numbers), rule_, corrections.write() + Rule::correction_count * begin, {}};
      const std::int64_t here = std::min<std::int64_t>(CountSteps<Rule>::most, count - begin);
      std::copy_n(steps.begin() + begin, here, counting.steps);
      for_each_index(stream, here, counting);
    }
    return corrections;
  }

  Rule rule_;
};

}  // namespace twiddle
