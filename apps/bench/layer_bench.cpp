#include "apps/bench/layer_bench.h"

#include <algorithm>
#include <limits>

#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/cast_around.h"
#include "layers/conv/tuner/timing.h"

namespace twiddle {

namespace {

// An engine restricted to one of its plans: "cudnn:fft_tiling".
class OnePlan final : public ConvEngine {
 public:
  OnePlan(std::string name, ConvEngine& engine, std::string plan)
      : name_(std::move(name)), engine_(engine), plan_(std::move(plan)) {}
  std::string_view name() const override { return name_; }
  std::string library() const override { return engine_.library(); }
  void forget() override { engine_.forget(); }
  ConvPlans plans(const ConvProblem& problem, ConvPass pass, std::size_t) const override {
    auto plan = engine_.plan(problem, pass, plan_);
    return plan == nullptr ? ConvPlans{} : ConvPlans{std::move(plan)};
  }

 private:
  std::string name_;
  ConvEngine& engine_;
  std::string plan_;
};

// Returns the fastest plan that meets the error limit. If there is none, returns the most exact one, so that it is
// shown, too.
std::shared_ptr<const ConvPlan> best_plan(const AutotunerResult::Pass& pass) {
  if (pass.candidates.empty()) return nullptr;
  if (pass.candidates.front().reason.empty()) return pass.candidates.front().plan;
  const auto error = [](const Candidate& candidate) {
    return candidate.error >= 0 ? candidate.error : std::numeric_limits<double>::infinity();
  };
  return std::min_element(pass.candidates.begin(), pass.candidates.end(),
                          [&](const Candidate& a, const Candidate& b) { return error(a) < error(b); })
      ->plan;
}

// Returns the milliseconds of a forward pass in evaluation, which reuses the filters' spectra across batches.
double time_in_evaluation(Context& ctx, const ConvPlan& plan, const ConvProblem& problem, double budget_ms) {
  const EvaluationMode evaluation(ctx);
  ConvOperands operands = random_operands(*ctx.stream, problem, ConvPass::forward);
  plan.run(ctx, operands);
  return time_calls(*ctx.stream, budget_ms, [&] { plan.run(ctx, operands); });
}

// Returns whether all passes have a plan and share spectra.
bool share(const StepPlans& plans) {
  return std::all_of(plans.begin(), plans.end(), [&](const auto& plan) {
    return plan != nullptr && !plan->facts().shares.empty() && plan->facts().shares == plans[0]->facts().shares;
  });
}

// Returns the winners as a step if they share spectra; otherwise the best plan for each pass alone.
StepPlans best_plans(const AutotunerResult& result, bool whole_steps) {
  StepPlans winners, alone;
  for (const ConvPass pass : every_pass) {
    winners[index_of(pass)] = result.passes[index_of(pass)].winner;
    alone[index_of(pass)] = best_plan(result.passes[index_of(pass)]);
  }
  return whole_steps && share(winners) ? winners : alone;
}

}  // namespace

std::string with_kept_filters(std::string_view engine) {
  return join(engine, " FX");
}

LayerBench::LayerBench(BenchOptions options) : options_(std::move(options)), ctx_(options_.device) {
  renew();
  std::vector<std::string> known;
  for (const auto& engine : all_) known.emplace_back(engine->name());
  for (const std::string& name : options_.engines)
    if (std::find(known.begin(), known.end(), name.substr(0, name.find(':'))) == known.end())
      throw Error(ErrorKind::config, unknown_name("convolution engine", name, known));
}

void LayerBench::renew() {
  asked_.clear();
  all_.clear();
  ctx_.stream->release_unused();
  all_ = make_conv_engines(options_.device, {.workspace_limit = options_.workspace_limit});
  if (storage_of(options_.precision) != DType::f32)
    for (auto& engine : all_) engine = cast_around(std::move(engine));
  for (const std::string& name : options_.engines) {
    const std::size_t colon = name.find(':');
    if (colon == std::string::npos) continue;
    for (const auto& engine : all_)
      if (engine->name() == name.substr(0, colon))
        asked_.push_back(std::make_unique<OnePlan>(name, *engine, name.substr(colon + 1)));
  }
}

// Omits the reference engine, which sums in double, unless it is named.
std::vector<ConvEngine*> LayerBench::engines() const {
  std::vector<ConvEngine*> asked;
  for (const auto& engine : all_) {
    const bool named =
        std::find(options_.engines.begin(), options_.engines.end(), engine->name()) != options_.engines.end();
    if (options_.engines.empty() ? engine->name() != "direct" : named) asked.push_back(engine.get());
  }
  for (const auto& engine : asked_) asked.push_back(engine.get());
  return asked;
}

ConvEngine* LayerBench::vendor() const {
  for (ConvEngine* engine : engines())
    if (engine->name() == "cudnn" || engine->name() == "onednn") return engine;
  return nullptr;
}

std::vector<SpectralEngine*> LayerBench::spectral() const {
  std::vector<SpectralEngine*> found;
  for (ConvEngine* engine : engines())
    if (auto* const spectral = dynamic_cast<SpectralEngine*>(engine)) found.push_back(spectral);
  return found;
}

ConvProblem LayerBench::problem_of(const BenchLayer& layer) const {
  ConvProblem problem = layer.problem;
  if (options_.batch > 0) problem.batch = options_.batch;
  problem.precision = options_.precision;
  return problem;
}

std::vector<ConvPass> LayerBench::passes_of(const BenchLayer& layer) const {
  std::vector<ConvPass> passes = options_.passes;
  if (layer.first) std::erase(passes, ConvPass::backward_input);
  return passes;
}

std::vector<BenchRow> LayerBench::run(const BenchLayer& layer) {
  const ConvProblem problem = problem_of(layer);
  const std::vector<ConvPass> passes = passes_of(layer);
  std::vector<BenchRow> rows;
  bool failed = false;
  for (ConvEngine* engine : engines()) {
    Autotuner autotuner(ctx_, problem, passes, {engine},
                        {.workspace_limit = options_.workspace_limit, .exact = !options_.engines.empty()});
    AutotunerResult result;
    try {
      result = autotuner.run();
    } catch (const OutOfMemory& error) {
      for (const ConvPass pass : passes) result.passes[index_of(pass)].failure = error.what();
    }
    const StepPlans plans = best_plans(result, options_.whole_steps);
    for (const ConvPass pass : passes) {
      const AutotunerResult::Pass& here = result.passes[index_of(pass)];
      const std::shared_ptr<const ConvPlan>& plan = plans[index_of(pass)];
      BenchRow row;
      row.layer = layer.name, row.problem = problem, row.pass = pass, row.engine = engine->name();
      if (plan == nullptr && here.failure.empty()) continue;
      if (plan == nullptr) {
        row.failure = here.failure;
      } else {
        const Measurement measured = measure(ctx_, *plan, problem, pass, options_.budget_ms);
        row.milliseconds = measured.milliseconds(), row.error = measured.error, row.failure = measured.failure;
        row.plan = plan->facts().name;
        row.workspace = plan->facts().scratch_bytes;
      }
      failed = failed || !row.measured();
      rows.push_back(row);
      if (options_.evaluation && pass == ConvPass::forward && row.measured() && !plan->facts().shares.empty()) {
        row.milliseconds = time_in_evaluation(ctx_, *plan, problem, options_.budget_ms);
        row.engine = with_kept_filters(engine->name());
        rows.push_back(row);
      }
    }
    if (!options_.whole_steps || !share(plans)) continue;
    try {
      const StepTimes in_step = StepTrial(ctx_, problem).time(plans, 3 * options_.budget_ms);
      for (BenchRow& row : rows)
        if (row.engine == engine->name()) row.in_step_ms = in_step.passes[index_of(row.pass)];
    } catch (const Error&) {  // the separate passes have their times
      failed = true;
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const BenchRow& a, const BenchRow& b) { return a.pass < b.pass; });
  if (failed) renew();
  ctx_.stream->release_unused();
  return rows;
}

double speed_up(const BenchRow& row, const std::vector<BenchRow>& rows, const ConvEngine* vendor) {
  if (vendor == nullptr || !row.measured()) return 0;
  for (const BenchRow& other : rows)
    if (other.engine == vendor->name() && other.pass == row.pass && other.measured())
      return other.milliseconds / row.milliseconds;
  return 0;
}

}  // namespace twiddle
