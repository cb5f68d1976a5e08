#include "tests/support/fake_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "framework/error.h"
#include "layers/conv/engines/engines.h"

namespace twiddle {

namespace {

struct Met {
  std::set<Version> versions;
  int runs = 0;
};

class PlanOfFake final : public ConvPlan {
 public:
  PlanOfFake(Facts facts, const FakePlan& traits, const ConvProblem& problem, ConvPass pass,
             std::shared_ptr<FakeClock> clock, std::shared_ptr<Met> met, int* runs)
      : ConvPlan(std::move(facts)),
        traits_(traits),
        problem_(problem),
        pass_(pass),
        clock_(std::move(clock)),
        met_(std::move(met)),
        runs_(runs) {}

  void run(Context&, ConvOperands& operands) const override {
    if (runs_ != nullptr) ++*runs_;
    ++met_->runs;
    ++clock_->plans_run;
    if (traits_.out_of_memory) throw OutOfMemory("not enough memory");
    if (traits_.throws || traits_.throws_in == pass_) throw Error(ErrorKind::device, "out of luck");
    Tensor& result = pass_ == ConvPass::forward          ? operands.y
                     : pass_ == ConvPass::backward_input ? operands.x
                                                         : operands.w;
    bool known = false;
    for (const Tensor* operand : {&operands.x, &operands.w, &operands.y})
      if (operand != &result) known = !met_->versions.insert(operand->version()).second || known;
    float* const values = result.write();
    for (std::int64_t i = 0; i < result.size(); ++i)
      values[i] = static_cast<float>(conv_reference(problem_, pass_, operands.x.read(), operands.w.read(),
                                                    operands.y.read(), nullptr, i)) *
                  (1 + traits_.error);
    const auto holds_nan = [](const Tensor& tensor) {
      return std::any_of(tensor.read(), tensor.read() + tensor.size(), [](float x) { return std::isnan(x); });
    };
    if (traits_.spreads)
      for (const Tensor* operand : {&operands.x, &operands.w, &operands.y})
        if (operand != &result && holds_nan(*operand))
          std::fill_n(values, result.size(), std::numeric_limits<float>::quiet_NaN());
    if (traits_.shares.empty() || !known) clock_->milliseconds += traits_.milliseconds;
    clock_->milliseconds += traits_.per_image_ms * problem_.batch;
    if (pass_ == ConvPass::backward_input) clock_->milliseconds += traits_.backward_input_ms;
    if (traits_.more) clock_->milliseconds += traits_.more(met_->runs);
  }

 private:
  FakePlan traits_;
  ConvProblem problem_;
  ConvPass pass_;
  std::shared_ptr<FakeClock> clock_;
  std::shared_ptr<Met> met_;  // of all plans of one name
  int* runs_;
};

class FakeEngine final : public ConvEngine {
 public:
  FakeEngine(std::string name, FakeEngineTraits traits, std::shared_ptr<FakeClock> clock, int* runs)
      : name_(std::move(name)), traits_(std::move(traits)), clock_(std::move(clock)), runs_(runs) {
    for (std::size_t i = 0; i < traits_.plans.size(); ++i) met_.push_back(std::make_shared<Met>());
  }
  std::string_view name() const override { return name_; }
  std::string library() const override { return traits_.missing ? "missing" : traits_.library; }
  std::string refusal(const ConvProblem&, ConvPass) const override { return traits_.refusal; }
  bool pays(const ConvProblem&) const override { return traits_.pays; }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t most) const override {
    if (traits_.missing) throw Error(ErrorKind::device, "libmissing cannot be loaded\n  Install it");
    ConvPlans made;
    for (std::size_t i = 0; i < traits_.plans.size() && made.size() < most; ++i) {
      const FakePlan& plan = traits_.plans[i];
      made.push_back(
          std::make_shared<PlanOfFake>(ConvPlan::Facts{.engine = name_,
                                                       .name = plan.name,
                                                       .scratch_bytes = plan.scratch,
                                                       .deterministic = plan.deterministic,
                                                       .fuses_epilogue_backward = plan.fuses_epilogue_backward,
                                                       .vendor = plan.spreads,
                                                       .shares = plan.shares},
                                       plan, problem, pass, clock_, met_[i], runs_));
    }
    return made;
  }

 private:
  std::string name_;
  FakeEngineTraits traits_;
  std::shared_ptr<FakeClock> clock_;
  int* runs_;
  std::vector<std::shared_ptr<Met>> met_;  // by plan
};

class Moment final : public Event {
 public:
  explicit Moment(double milliseconds) : milliseconds_(milliseconds) {}
  void wait() const override {}
  double milliseconds_since(const Event& earlier) const override {
    return milliseconds_ - dynamic_cast<const Moment&>(earlier).milliseconds_;
  }

 private:
  double milliseconds_;
};

}  // namespace

std::shared_ptr<Event> FakeTimeStream::record_event() {
  if (clock_->plans_run == plans_before_) clock_->milliseconds += clock_->without_plan_ms;
  plans_before_ = clock_->plans_run;
  return std::make_shared<Moment>(clock_->milliseconds);
}

std::unique_ptr<ConvEngine> make_fake_engine(std::string name, FakeEngineTraits traits,
                                             std::shared_ptr<FakeClock> clock, int* runs) {
  return std::make_unique<FakeEngine>(std::move(name), std::move(traits), std::move(clock), runs);
}

}  // namespace twiddle
