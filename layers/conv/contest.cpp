#include "layers/conv/contest.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/epilogue.h"

namespace twiddle {

namespace {

constexpr double step_look_ms = 1, first_look_ms = 3, second_look_ms = 10, last_look_ms = 30;
constexpr double near = 1.3;  // of the fastest at the first look: who gets the second
constexpr double far = 1.5;   // behind the fastest in a single run: who gets none
constexpr std::size_t most_second_looks = 4, most_repeats = 4;
constexpr double most_apart = 1.5;  // the winner of one turn in the other: beyond, something else was at work
constexpr double infinity = std::numeric_limits<double>::infinity();

bool is_in(const Entrant& entrant) {
  return entrant.fate.empty();
}

bool faster(const Entrant& a, const Entrant& b) {
  if (is_in(a) != is_in(b)) return is_in(a);
  return a.milliseconds < b.milliseconds;
}

}  // namespace

Contest::Contest(Context& ctx, const ConvProblem& problem, std::vector<ConvPass> passes,
                 std::vector<ConvEngine*> engines, Rules rules, Stopwatch& stopwatch)
    : ctx_(ctx),
      problem_(problem),
      passes_(std::move(passes)),
      engines_(std::move(engines)),
      rules_(std::move(rules)),
      stopwatch_(stopwatch) {}

ContestResult Contest::hold() {
  gather();
  ContestResult result = hold_once();
  return result.doubtful() ? hold_once() : result;
}

StepPlans Contest::Family::fastest() const {
  StepPlans fastest;
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (!plans[i].empty()) fastest[i] = plans[i].front().plan;
  return fastest;
}

bool Contest::takes_part(ConvPass pass) const {
  return std::find(passes_.begin(), passes_.end(), pass) != passes_.end();
}

void Contest::between_two() const {
  if (rules_.between_two) rules_.between_two();
}

// What a plan that failed may have left to its engine.
void Contest::forget() const {
  for (ConvEngine* engine : engines_) engine->forget();
}

// One engine whose library is missing, say, is no reason to do without the others.
void Contest::gather() {
  for (const ConvPass pass : passes_)
    for (const ConvEngine* engine : engines_) try {
        for (auto& plan : engine->plans(problem_, pass))
          if (plan->facts().scratch_bytes <= rules_.workspace_limit && (!plan->facts().exact || rules_.exact) &&
              (plan->facts().deterministic || !rules_.deterministic))
            plans_[index_of(pass)].push_back(std::move(plan));
      } catch (const Error& error) {
        failures_[index_of(pass)] += fmt::format(", {} failed: {}", engine->name(), first_line(error.what()));
        if (rules_.failed) rules_.failed(*engine, error);
      }
}

ContestResult Contest::hold_once() {
  std::vector<Family> families = fastest_families();
  ContestResult result;
  for (const ConvPass pass : passes_) race(pass, families, result);
  settle(families, result);
  return result;
}

// Those with plans for every pass that is contested.
std::vector<Contest::Family> Contest::families_of_all() const {
  std::vector<std::pair<std::string, Family>> found;
  for (const ConvPass pass : passes_)
    for (const auto& plan : plans_[index_of(pass)]) {
      const std::string& shares = plan->facts().shares;
      if (shares.empty()) continue;
      auto known = std::find_if(found.begin(), found.end(), [&](const auto& each) { return each.first == shares; });
      if (known == found.end()) known = found.insert(found.end(), {shares, {.engine = plan->facts().engine}});
      known->second.plans[index_of(pass)].push_back({plan, infinity});
    }
  std::vector<Family> families;
  for (auto& [shares, family] : found)
    if (std::all_of(passes_.begin(), passes_.end(),
                    [&](ConvPass pass) { return !family.plans[index_of(pass)].empty(); }))
      families.push_back(std::move(family));
  return families;
}

// The fastest of each engine that comes near the fastest of all, with its plans sorted; where a step finds no room,
// each engine's likely best, whose plans may find it alone.
std::vector<Contest::Family> Contest::fastest_families() {
  std::vector<Family> families = families_of_all();
  if (families.empty()) return families;
  StepTrial trial(ctx_, problem_);
  const auto sort = [&] {
    std::stable_sort(families.begin(), families.end(),
                     [](const Family& a, const Family& b) { return a.milliseconds < b.milliseconds; });
  };
  for (Family& family : families) look(trial, family, step_look_ms);
  sort();
  const double limit = near * families.front().milliseconds;
  for (std::size_t i = 0; i < std::min(families.size(), most_second_looks); ++i)
    if (families[i].milliseconds <= limit && families[i].milliseconds < second_look_ms)
      look(trial, families[i], second_look_ms);
  sort();
  const double fastest = families.front().milliseconds;
  std::vector<Family> best;
  for (Family& family : families) {
    const bool is_first_of_engine =
        std::none_of(best.begin(), best.end(), [&](const Family& better) { return better.engine == family.engine; });
    if (!is_first_of_engine || family.milliseconds > near * fastest) continue;
    if (fastest < infinity) choose_products(trial, family);
    best.push_back(std::move(family));
  }
  return best;
}

void Contest::look(StepTrial& trial, Family& family, double budget_ms) const {
  between_two();
  try {
    const StepTimes times = trial.time(family.fastest(), budget_ms, stopwatch_);
    for (const ConvPass pass : passes_) {
      std::vector<Timed>& plans = family.plans[index_of(pass)];
      if (!plans.empty()) plans.front().milliseconds = times.passes[index_of(pass)];
    }
    family.milliseconds = times.total();
  } catch (const Error&) {  // no room for it, or its library refuses
    forget();
    family.milliseconds = infinity;
  }
}

// Its other plans take turns in the step, each pass's next one at once.
void Contest::choose_products(StepTrial& trial, Family& family) const {
  std::size_t rounds = 0;
  for (const auto& plans : family.plans) rounds = std::max(rounds, plans.size());
  const Family before = family;
  for (std::size_t round = 1; round < rounds; ++round) {
    Family turn{.engine = family.engine};
    for (std::size_t i = 0; i < family.plans.size(); ++i)
      if (!before.plans[i].empty()) turn.plans[i] = {before.plans[i][std::min(round, before.plans[i].size() - 1)]};
    look(trial, turn, step_look_ms);
    if (turn.milliseconds <= near * before.milliseconds && turn.milliseconds < second_look_ms)
      look(trial, turn, second_look_ms);
    for (std::size_t i = 0; i < family.plans.size(); ++i)
      if (round < before.plans[i].size() && turn.milliseconds < infinity)
        family.plans[i][round].milliseconds = turn.plans[i].front().milliseconds;
  }
  for (auto& plans : family.plans)
    std::stable_sort(plans.begin(), plans.end(),
                     [](const Timed& a, const Timed& b) { return a.milliseconds < b.milliseconds; });
}

// Everyone alone, of a family the fastest that keeps the precision: it leaves there that one at most.
void Contest::race(ConvPass pass, std::vector<Family>& families, ContestResult& result) {
  ContestResult::Pass& here = result.passes[index_of(pass)];
  here.failure = failures_[index_of(pass)];
  for (const auto& plan : plans_[index_of(pass)]) here.entrants.push_back({.plan = plan, .facts = plan->facts()});
  PassTrial trial(ctx_, problem_, pass);
  double fastest = infinity;
  const auto enter = [&](const std::shared_ptr<const ConvPlan>& plan) -> Entrant& {
    Entrant& entrant = *std::find_if(here.entrants.begin(), here.entrants.end(),
                                     [&](const Entrant& each) { return each.plan == plan; });
    take_first_look(trial, entrant, fastest);
    return entrant;
  };
  for (Family& family : families) {
    std::vector<Timed>& plans = family.plans[index_of(pass)];
    const bool was_timed = family.milliseconds < infinity;
    const auto exact = std::find_if(plans.begin(), plans.end(), [&](const Timed& timed) {
      return (timed.milliseconds < infinity || !was_timed) && is_in(enter(timed.plan));
    });
    plans = exact == plans.end() ? std::vector<Timed>{} : std::vector<Timed>{*exact};
  }
  for (const auto& plan : plans_[index_of(pass)])
    if (plan->facts().shares.empty()) enter(plan);

  // The best run a second time, a while after their first turn: what kept the machine busy shows as another winner.
  std::stable_sort(here.entrants.begin(), here.entrants.end(), faster);
  std::vector<double> first, second;
  for (Entrant& entrant : here.entrants) {
    if (!is_in(entrant) || entrant.milliseconds > near * here.entrants.front().milliseconds ||
        first.size() >= most_repeats)
      break;
    between_two();
    first.push_back(entrant.milliseconds);
    try {
      second.push_back(stopwatch_.best(*ctx_.stream, second_look_ms, [&] { trial.run(*entrant.plan); }));
    } catch (const Error&) {  // the first turn stands
      second.push_back(entrant.milliseconds);
    }
  }
  for (std::size_t i = 0; i < first.size(); ++i) here.entrants[i].milliseconds = std::min(first[i], second[i]);
  const auto winner = [](const std::vector<double>& turn) {
    return static_cast<std::size_t>(std::min_element(turn.begin(), turn.end()) - turn.begin());
  };
  const auto lost = [&](const std::vector<double>& turn, std::size_t plan) {
    return turn[plan] > most_apart * turn[winner(turn)];
  };
  if (first.size() > 1) here.doubtful = lost(second, winner(first)) || lost(first, winner(second));
  std::stable_sort(here.entrants.begin(), here.entrants.end(), faster);
}

void Contest::take_first_look(PassTrial& trial, Entrant& entrant, double& fastest) const {
  between_two();
  try {
    entrant.fate = trial.why_not(*entrant.plan, entrant.error);
    if (!is_in(entrant)) return;
    const Work work = [&] { trial.run(*entrant.plan); };
    work();
    entrant.milliseconds = stopwatch_.once(*ctx_.stream, work);
    if (entrant.milliseconds > far * fastest + 0.05) return;
    entrant.milliseconds = stopwatch_.best(*ctx_.stream, first_look_ms, work);
    fastest = std::min(fastest, entrant.milliseconds);
  } catch (const Error& error) {
    forget();
    entrant.milliseconds = infinity;
    entrant.fate = fmt::format("failed: {}", error.what());
  }
}

// The best of each pass apart, or one family for all.
void Contest::settle(const std::vector<Family>& families, ContestResult& result) {
  const auto dropped = [&](ConvPass pass) {
    std::string text = failures_[index_of(pass)];
    for (const Entrant& entrant : result.passes[index_of(pass)].entrants)
      if (entrant.fate.starts_with("misses") || entrant.fate.starts_with("failed"))
        text += fmt::format(", {} {}", full_name(*entrant.plan), entrant.fate);
    return text;
  };
  StepPlans apart_plans;
  double apart = 0;
  bool complete = true;
  for (const ConvPass pass : passes_) {
    ContestResult::Pass& here = result.passes[index_of(pass)];
    const auto& entrants = here.entrants;
    if (entrants.empty() || !is_in(entrants.front())) {
      here.reason = "nothing else keeps the precision" + dropped(pass);
      complete = false;
      continue;
    }
    here.winner = apart_plans[index_of(pass)] = entrants.front().plan;
    here.milliseconds = entrants.front().milliseconds;
    here.reason = fmt::format("measured {:.2f} ms", here.milliseconds);
    const auto next = std::find_if(entrants.begin() + 1, entrants.end(), [&](const Entrant& entrant) {
      return is_in(entrant) && entrant.plan->facts().engine != here.winner->facts().engine;
    });
    if (next != entrants.end())
      here.reason += fmt::format(", next {} {:.2f}", next->plan->facts().engine, next->milliseconds);
    here.reason += dropped(pass);
    apart += here.milliseconds;
  }
  if (!complete || families.empty() || passes_.size() == 1) return;

  StepTrial trial(ctx_, problem_);
  const auto& [of_forward, of_input, of_weight] = apart_plans;
  if (of_weight != nullptr && !plans_do_way_back(of_input.get(), of_weight.get(), problem_.relu))
    apart += trial.time_epilogue(second_look_ms, stopwatch_);
  double least = apart;
  for (const Family& family : families) {
    if (!std::all_of(passes_.begin(), passes_.end(),
                     [&](ConvPass pass) { return !family.plans[index_of(pass)].empty(); }))
      continue;
    between_two();
    StepTimes times;
    try {
      times = trial.time(family.fastest(), last_look_ms, stopwatch_);
    } catch (const Error&) {  // one pass had room, all together have not
      forget();
      continue;
    }
    if (times.total() >= least) continue;
    least = times.total();
    const bool doubtful = result.doubtful();  // what they won against
    for (const ConvPass pass : passes_) {
      ContestResult::Pass& here = result.passes[index_of(pass)];
      here.winner = family.plans[index_of(pass)].front().plan;
      here.milliseconds = times.passes[index_of(pass)];
      here.doubtful = doubtful;
      here.reason = fmt::format("measured {:.2f} ms beside its other passes, {} {:.2f}, the best apart {:.2f}",
                                here.milliseconds, passes_.size() == 3 ? "all three" : "both", least, apart) +
                    dropped(pass);
    }
  }
}

}  // namespace twiddle
