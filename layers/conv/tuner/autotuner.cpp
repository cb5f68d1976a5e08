#include "layers/conv/tuner/autotuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "framework/context.h"
#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/engines/epilogue.h"
#include "layers/conv/tuner/timing.h"

namespace twiddle {

namespace {

constexpr double step_look_ms = 1, first_look_ms = 3, second_look_ms = 10, last_look_ms = 30;
constexpr double near = 1.3;  // times the fastest in the first timing: up to this, timed again
constexpr double far = 1.5;   // times the fastest in a single run: above this, not timed further
// The error of a plan that is this many times as slow as the fastest so far is not checked, which saves several runs.
// After this many slow plans of an engine, highest-ranked first, its other plans are skipped: for a depthwise 31x31
// layer cuDNN has dozens per pass that take 5 ms or more, while 0.2 ms is possible.
constexpr double too_slow = 10;
constexpr int most_slow_plans = 3;
constexpr std::size_t most_second_looks = 4, most_repeats = 4;
constexpr double most_apart = 1.5;  // slowdown of the first winner in the repeat: above, the machine was busy
constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_in(const Candidate& candidate) {
  return candidate.reason.empty();
}

// Eliminated plans come after the fastest: they were never timed or took many times as long. If two plans are equally
// fast, the higher-ranked one stays first.
template <class Timed>
void sort_by_time(std::vector<Timed>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const Timed& a, const Timed& b) { return a.milliseconds < b.milliseconds; });
}

// For the reason's string: the plans that failed or were rejected.
std::string dropped(const AutotunerResult::Pass& pass) {
  std::string text = pass.failure;
  for (const Candidate& candidate : pass.candidates)
    if (candidate.reason.starts_with("misses") || candidate.reason.starts_with("failed"))
      text += fmt::format(", {} {}", full_name(*candidate.plan), candidate.reason);
  return text;
}

// Selects the fastest of the plans that were timed alone.
void choose_winner(AutotunerResult::Pass& here) {
  if (here.candidates.empty() || !is_in(here.candidates.front())) {
    here.reason = "no other plan is within the error limit" + dropped(here);
    return;
  }
  here.winner = here.candidates.front().plan;
  here.milliseconds = here.candidates.front().milliseconds;
  here.reason = fmt::format("measured {:.2f} ms", here.milliseconds);
  const auto next = std::find_if(here.candidates.begin(), here.candidates.end(), [&](const Candidate& candidate) {
    return is_in(candidate) && candidate.facts.engine != here.winner->facts().engine;
  });
  if (next != here.candidates.end())
    here.reason += fmt::format(", next {} {:.2f}", next->facts.engine, next->milliseconds);
  here.reason += dropped(here);
}

// Null: none of them.
const Candidate* fastest_fused(const std::vector<Candidate>& candidates) {
  const auto found = std::find_if(candidates.begin(), candidates.end(), [](const Candidate& each) {
    return is_in(each) && each.facts.fuses_epilogue_backward;
  });
  return found == candidates.end() ? nullptr : &*found;
}

}  // namespace

Autotuner::Autotuner(Context& ctx, const ConvProblem& problem, std::vector<ConvPass> passes,
                     std::vector<ConvEngine*> engines, Rules rules)
    : ctx_(ctx),
      problem_(problem),
      passes_(std::move(passes)),
      engines_(std::move(engines)),
      rules_(std::move(rules)) {}

AutotunerResult Autotuner::run() {
  const AutotunerResult gathered = gather();
  AutotunerResult result = run_once(gathered);
  return result.doubtful() ? run_once(gathered) : result;
}

AutotunerResult Autotuner::run_once(AutotunerResult result) {
  std::vector<Family> families = fastest_families(result);
  for (const ConvPass pass : passes_) time_alone(pass, families, result.passes[index_of(pass)]);
  weigh_epilogue_backward(result);
  time_together(families, result);
  for (const ConvPass pass : passes_) result.passes[index_of(pass)].short_of_memory = short_of_memory_;
  return result;
}

// A plan that failed may have left something to its engine.
void Autotuner::note(const Error& failure) {
  short_of_memory_ |= dynamic_cast<const OutOfMemory*>(&failure) != nullptr;
  for (ConvEngine* engine : engines_) engine->forget();
}

// Collects the candidates. If one engine fails, such as for a missing library, the others still take part.
AutotunerResult Autotuner::gather() const {
  AutotunerResult gathered;
  for (const ConvPass pass : passes_) {
    AutotunerResult::Pass& here = gathered.passes[index_of(pass)];
    for (const ConvEngine* engine : engines_) try {
        for (auto& plan : engine->plans(problem_, pass)) {
          const ConvPlan::Facts facts = plan->facts();
          if (facts.fits(rules_.workspace_limit) && (!facts.exact || rules_.exact) &&
              (facts.deterministic || !rules_.deterministic))
            here.candidates.push_back({.plan = std::move(plan), .facts = facts});
        }
      } catch (const Error& error) {
        here.failure += fmt::format(", {} failed: {}", engine->name(), first_line(error.what()));
        rules_.failed(*engine, error);
      }
  }
  return gathered;
}

StepPlans Autotuner::Family::in_round(std::size_t round) const {
  StepPlans chosen;
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (!plans[i].empty()) chosen[i] = plans[i][std::min(round, plans[i].size() - 1)].plan;
  return chosen;
}

// The families with plans for every benchmarked pass.
std::vector<Autotuner::Family> Autotuner::families(const AutotunerResult& gathered) const {
  std::vector<Family> all;
  for (const ConvPass pass : passes_)
    for (const Candidate& candidate : gathered.passes[index_of(pass)].candidates) {
      const std::string& shares = candidate.facts.shares;
      if (shares.empty()) continue;
      auto family = std::find_if(all.begin(), all.end(), [&](const Family& each) { return each.shares == shares; });
      if (family == all.end())
        family = all.insert(all.end(), Family{.shares = shares, .engine = candidate.facts.engine});
      family->plans[index_of(pass)].push_back({candidate.plan});
    }
  std::erase_if(all, [&](const Family& family) {
    return std::any_of(passes_.begin(), passes_.end(),
                       [&](ConvPass pass) { return family.plans[index_of(pass)].empty(); });
  });
  return all;
}

// The fastest family of each engine that comes near the fastest of all, with its plans sorted. If no step fits in
// memory: each engine's highest-ranked family, whose plans may fit alone.
std::vector<Autotuner::Family> Autotuner::fastest_families(const AutotunerResult& gathered) {
  std::vector<Family> all = families(gathered);
  if (all.empty()) return all;
  StepTrial trial(ctx_, problem_);
  for (Family& family : all) look(trial, family, step_look_ms);
  sort_by_time(all);
  const double limit = near * all.front().milliseconds;
  for (std::size_t i = 0; i < std::min(all.size(), most_second_looks); ++i)
    if (all[i].milliseconds <= limit && all[i].milliseconds < second_look_ms) look(trial, all[i], second_look_ms);
  sort_by_time(all);
  const double fastest = all.front().milliseconds;
  std::vector<Family> best;
  for (Family& family : all) {
    const bool is_first_of_engine =
        std::none_of(best.begin(), best.end(), [&](const Family& better) { return better.engine == family.engine; });
    if (!is_first_of_engine || family.milliseconds > near * fastest) continue;
    if (fastest < infinity) choose_products(trial, family);
    best.push_back(std::move(family));
  }
  return best;
}

// Infinite if a step does not fit in memory or a library fails.
StepTimes Autotuner::look(StepTrial& trial, const StepPlans& plans, double budget_ms) {
  rules_.between_two();
  try {
    return trial.time(plans, budget_ms);
  } catch (const Error& error) {
    note(error);
    return {{infinity, infinity, infinity}};
  }
}

void Autotuner::look(StepTrial& trial, Family& family, double budget_ms) {
  const StepTimes times = look(trial, family.in_round(0), budget_ms);
  family.milliseconds = times.total();
  for (const ConvPass pass : passes_) family.plans[index_of(pass)].front().milliseconds = times.passes[index_of(pass)];
}

// Times its other plans in the step; each round runs the next plan of every pass.
void Autotuner::choose_products(StepTrial& trial, Family& family) {
  std::size_t rounds = 0;
  for (const auto& plans : family.plans) rounds = std::max(rounds, plans.size());
  for (std::size_t round = 1; round < rounds; ++round) {
    const StepPlans turn = family.in_round(round);
    StepTimes times = look(trial, turn, step_look_ms);
    if (times.total() <= near * family.milliseconds && times.total() < second_look_ms)
      times = look(trial, turn, second_look_ms);
    for (std::size_t i = 0; i < family.plans.size(); ++i)
      if (round < family.plans[i].size()) family.plans[i][round].milliseconds = times.passes[i];
  }
  for (auto& plans : family.plans) sort_by_time(plans);
}

// Times each candidate alone, and of a family its fastest plan within the error limit. The family keeps at most that
// plan.
void Autotuner::time_alone(ConvPass pass, std::vector<Family>& families, AutotunerResult::Pass& here) {
  PassTrial trial(ctx_, problem_, pass);
  double fastest = infinity;
  const auto holds = [&](const Timed& timed) {
    Candidate& candidate = *std::find_if(here.candidates.begin(), here.candidates.end(),
                                         [&](const Candidate& each) { return each.plan == timed.plan; });
    take_first_look(trial, candidate, fastest);
    return is_in(candidate);
  };
  for (Family& family : families) {
    std::vector<Timed>& plans = family.plans[index_of(pass)];
    // What failed in a step that others managed is out; where no step was managed, each may do it alone.
    if (family.milliseconds < infinity)
      std::erase_if(plans, [](const Timed& timed) { return timed.milliseconds == infinity; });
    const auto first = std::find_if(plans.begin(), plans.end(), holds);
    plans = first == plans.end() ? std::vector<Timed>{} : std::vector<Timed>{*first};
  }
  std::map<std::string, int> slow_plans;  // by engine
  for (Candidate& candidate : here.candidates) {
    if (!candidate.facts.shares.empty()) continue;
    int& slow = slow_plans[candidate.facts.engine];
    if (slow >= most_slow_plans) {
      candidate.reason = fmt::format(
          "not benchmarked: {} higher-ranked plans of this engine took over {}x the fastest time", slow, too_slow);
      continue;
    }
    take_first_look(trial, candidate, fastest);
    if (candidate.milliseconds < infinity && candidate.milliseconds > too_slow * fastest) ++slow;
  }
  sort_by_time(here.candidates);
  repeat_the_best(trial, here);
  sort_by_time(here.candidates);
  choose_winner(here);
}

void Autotuner::take_first_look(PassTrial& trial, Candidate& candidate, double& fastest) {
  rules_.between_two();
  try {
    const Work work = [&] { trial.run(*candidate.plan); };
    work();
    const double once = time_in_a_row(*ctx_.stream, 1, work);
    if (once > too_slow * fastest) {
      candidate.milliseconds = once;
      candidate.reason = fmt::format("more than {} times as slow as the fastest", too_slow);
      return;
    }
    candidate.reason = trial.why_not(*candidate.plan, candidate.error);
    if (!is_in(candidate)) return;
    candidate.milliseconds = once;
    if (once > far * fastest + 0.05) return;
    candidate.milliseconds = time_calls(*ctx_.stream, first_look_ms, work);
    fastest = std::min(fastest, candidate.milliseconds);
  } catch (const Error& error) {
    note(error);
    candidate.milliseconds = infinity;
    candidate.reason = fmt::format("failed: {}", error.what());
  }
}

// Times the best plans again, some time after the first timing. If the machine was busy, another plan wins. The first
// timing needs no such check: all repeated plans were near its winner.
static_assert(near <= most_apart);
void Autotuner::repeat_the_best(PassTrial& trial, AutotunerResult::Pass& here) const {
  if (here.candidates.empty() || !is_in(here.candidates.front())) return;
  const double limit = near * here.candidates.front().milliseconds;
  std::vector<double> again;
  for (Candidate& candidate : here.candidates) {
    if (candidate.milliseconds > limit || again.size() >= most_repeats) break;
    rules_.between_two();
    try {
      again.push_back(time_calls(*ctx_.stream, second_look_ms, [&] { trial.run(*candidate.plan); }));
    } catch (const Error&) {  // the first timing remains valid
      again.push_back(candidate.milliseconds);
    }
    candidate.milliseconds = std::min(candidate.milliseconds, again.back());
  }
  here.doubtful = again.front() > most_apart * *std::min_element(again.begin(), again.end());
}

// Selects plans that fuse the backward pass of bias and ReLU instead of faster ones that need a separate pass for it.
// In training one such pass serves both gradients.
void Autotuner::weigh_epilogue_backward(AutotunerResult& result) const {
  if (!problem_.bias && !problem_.relu) return;
  StepPlans winners;
  std::array<const Candidate*, 3> doing_it{};
  double by_winners = 0, by_doing_it = 0;
  for (const ConvPass pass : passes_) {
    if (pass == ConvPass::forward) continue;
    const AutotunerResult::Pass& here = result.passes[index_of(pass)];
    if (here.winner == nullptr) return;
    winners[index_of(pass)] = here.winner;
    by_winners += here.milliseconds;
    const bool any_plan_does = pass == ConvPass::backward_input && !problem_.relu;  // the other pass does the bias
    const Candidate* const candidate = any_plan_does ? nullptr : fastest_fused(here.candidates);
    if (!any_plan_does && candidate == nullptr) return;
    doing_it[index_of(pass)] = candidate;
    by_doing_it += any_plan_does ? here.milliseconds : candidate->milliseconds;
  }
  const auto& [of_forward, of_input, of_weight] = winners;
  if (of_weight == nullptr || plans_do_epilogue_backward(of_input.get(), of_weight.get(), problem_.relu)) return;
  try {
    by_winners += StepTrial(ctx_, problem_).time_epilogue(second_look_ms);
  } catch (const OutOfMemory&) {
    return;
  }
  if (by_doing_it >= by_winners) return;
  for (const ConvPass pass : passes_) {
    const Candidate* const candidate = doing_it[index_of(pass)];
    if (candidate == nullptr) continue;
    AutotunerResult::Pass& here = result.passes[index_of(pass)];
    here.winner = candidate->plan;
    here.milliseconds = candidate->milliseconds;
    here.reason = fmt::format(
        "measured {:.2f} ms with the backward pass of bias and ReLU inside, in total {:.2f}, with a separate pass "
        "{:.2f}",
        here.milliseconds, by_doing_it, by_winners);
    here.reason += dropped(here);
  }
}

// Selects one family for all passes instead of the best plan of each pass, if that is faster.
void Autotuner::time_together(const std::vector<Family>& families, AutotunerResult& result) {
  if (families.empty() || passes_.size() == 1) return;
  StepPlans plans;
  double apart = 0;
  for (const ConvPass pass : passes_) {
    const AutotunerResult::Pass& here = result.passes[index_of(pass)];
    if (here.winner == nullptr) return;
    plans[index_of(pass)] = here.winner;
    apart += here.milliseconds;
  }
  StepTrial trial(ctx_, problem_);
  const auto& [of_forward, of_input, of_weight] = plans;
  if (of_weight != nullptr && !plans_do_epilogue_backward(of_input.get(), of_weight.get(), problem_.relu))
    apart += trial.time_epilogue(second_look_ms);
  double least = apart;
  for (const Family& family : families) {
    const StepPlans together = family.in_round(0);
    if (std::any_of(passes_.begin(), passes_.end(), [&](ConvPass pass) { return together[index_of(pass)] == nullptr; }))
      continue;
    const StepTimes times = look(trial, together, last_look_ms);
    if (times.total() >= least) continue;
    least = times.total();
    const bool doubtful = result.doubtful();  // what they won against
    for (const ConvPass pass : passes_) {
      AutotunerResult::Pass& here = result.passes[index_of(pass)];
      here.winner = together[index_of(pass)];
      here.milliseconds = times.passes[index_of(pass)];
      here.doubtful = doubtful;
      here.reason = fmt::format("measured {:.2f} ms with its other passes, {} {:.2f}, the best separately {:.2f}",
                                here.milliseconds, passes_.size() == 3 ? "all three" : "both", least, apart) +
                    dropped(here);
    }
  }
}

}  // namespace twiddle
