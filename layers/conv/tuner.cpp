#include "layers/conv/tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "framework/text.h"

namespace twiddle {

namespace {

const std::string rule = "rule", measured = "measured";

// Where it cannot be loaded, it has no version.
std::string library_of(const ConvEngine& engine) try { return engine.library(); } catch (const Error&) {
  return "missing";
}

bool is_measured(const std::string& how) {
  return how == measured || how.starts_with(measured + ":");
}

ConvProblem at_batch(ConvProblem problem, int batch) {
  problem.batch = batch;
  return problem;
}

}  // namespace

ConvTuner::ConvTuner(std::vector<std::unique_ptr<ConvEngine>> engines, ConvPolicy policy,
                     std::shared_ptr<Stopwatch> stopwatch)
    : engines_(std::move(engines)),
      policy_(std::move(policy)),
      cache_(policy_.cache_file, policy_.warn, policy_.retune, policy_.build),
      stopwatch_(stopwatch ? std::move(stopwatch) : std::make_shared<Stopwatch>()) {}

const ConvTuner::Choice& ConvTuner::choose(Context& ctx, const ConvProblem& problem, ConvPass pass,
                                           const std::string& engine) {
  const Key key = key_of(problem, pass, engine);
  const auto known = choices_.find(key);
  if (known != choices_.end() && known->second.holds && !(ctx.training && known->second.forward_alone))
    return known->second;
  const std::string& how = std::get<0>(key);
  Choice choice = how == rule        ? by_rule(&ctx, problem, pass)
                  : is_measured(how) ? by_measurement(ctx, problem, pass, how)
                                     : by_name(&ctx, problem, pass, how);
  forget_rehearsals(ctx);
  return choices_.insert_or_assign(key, std::move(choice)).first->second;
}

// What was tried leaves the memory as it was.
void ConvTuner::forget_rehearsals(Context& ctx) {
  for (const auto& engine : engines_) engine->forget();
  ctx.stream->release_unused();
}

bool ConvTuner::recall(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  const Key key = key_of(problem, pass, engine);
  const std::string& how = std::get<0>(key);
  if (!is_measured(how)) return true;
  if (const Choice* chosen = find(problem, pass, engine); chosen != nullptr && !chosen->forward_alone) return true;
  Choice found = known(device, problem, pass, how, false);
  if (found.plan == nullptr) return false;
  choices_.insert_or_assign(key, std::move(found));
  return true;
}

const ConvTuner::Choice* ConvTuner::find(const ConvProblem& problem, ConvPass pass, const std::string& engine) const {
  const auto known = choices_.find(key_of(problem, pass, engine));
  return known == choices_.end() ? nullptr : &known->second;
}

ConvTuner::Plan ConvTuner::expected(const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  if (const Choice* known = find(problem, pass, engine)) return known->plan;
  const std::string& how = engine.empty() ? policy_.engine : engine;
  if (how != rule && !is_measured(how)) return by_name(nullptr, problem, pass, how).plan;
  if (is_measured(how))
    if (const Choice other = of_another_batch(problem, pass, how, false); other.plan != nullptr) return other.plan;
  return by_rule(nullptr, problem, pass).plan;
}

void ConvTuner::check_name(const std::string& engine) const {
  if (engines_.empty()) return;
  std::vector<std::string> known = names();
  known.insert(known.begin(), {rule, measured});
  const bool among_one = engine.starts_with(measured + ":");
  const std::string name = among_one ? engine.substr(measured.size() + 1) : engine.substr(0, engine.find(':'));
  const bool is_policy = name == rule || name == measured;
  if (std::find(known.begin(), known.end(), name) == known.end() || (is_policy && name != engine))
    throw Error(ErrorKind::config, unknown_name("convolution engine", name, known));
}

std::vector<std::string> ConvTuner::names() const {
  std::vector<std::string> all;
  for (const auto& engine : engines_) all.emplace_back(engine->name());
  return all;
}

ConvEngine& ConvTuner::engine(const std::string& name) {
  const auto found =
      std::find_if(engines_.begin(), engines_.end(), [&](const auto& engine) { return engine->name() == name; });
  if (found == engines_.end()) throw Error(ErrorKind::config, unknown_name("convolution engine", name, names()));
  return **found;
}

ConvTuner::Key ConvTuner::key_of(const ConvProblem& problem, ConvPass pass, const std::string& engine) const {
  return {engine.empty() ? policy_.engine : engine, problem, pass};
}

// Without a context nothing can be run, and the plan's word is taken.
std::string ConvTuner::why_not(Context* ctx, const ConvProblem& problem, ConvPass pass, Choice& choice) const {
  const ConvPlan::Facts& facts = choice.plan->facts();
  if (facts.scratch_bytes > policy_.workspace_limit)
    return join("needs ", format_bytes(facts.scratch_bytes), " of workspace, more than the workspace_limit of ",
                format_bytes(policy_.workspace_limit));
  if (policy_.deterministic && !facts.deterministic)
    return "gives other bits in each run, which `deterministic: true` rules out";
  if (ctx == nullptr) return {};
  choice.holds = true;
  if (facts.exact) return {};
  try {
    double error = 0;
    return PassTrial(*ctx, problem, pass).why_not(*choice.plan, error);
  } catch (const OutOfMemory&) {       // no room for a rehearsal is no reason against the plan
    if (policy_.deterministic) throw;  // what is taken is not to depend on what room there is
    choice.reason += ", not held to its precision: no room for that";
    return {};
  } catch (const Error& error) {
    return "failed: " + first_line(error.what());
  }
}

ConvTuner::Choice ConvTuner::first_that_holds(Context* ctx, const ConvProblem& problem, ConvPass pass,
                                              const ConvEngine& engine, Refusal& refusal) const {
  // As a rule the first will do, and others may be costly to make.
  for (const std::size_t most : {std::size_t(1), ConvEngine::all_plans})
    for (Plan& plan : engine.plans(problem, pass, most)) {
      if (full_name(*plan) == refusal.plan) continue;
      Choice choice{std::move(plan)};
      std::string why = why_not(ctx, problem, pass, choice);
      if (why.empty()) return choice;
      if (refusal.plan.empty()) refusal = {full_name(*choice.plan), std::move(why)};
    }
  return {};
}

ConvTuner::Choice ConvTuner::by_rule(Context* ctx, const ConvProblem& problem, ConvPass pass) {
  std::string refusals;
  bool broken = false;
  for (const auto& engine : engines_) {
    if (!engine->pays(problem)) continue;
    Refusal refusal;
    Choice choice;
    try {
      choice = first_that_holds(ctx, problem, pass, *engine, refusal);
    } catch (const OutOfMemory&) {
      throw;
    } catch (const Error& error) {
      warn_of(*engine, error);
      broken = true;
      refusal = {std::string(engine->name()), "failed: " + first_line(error.what())};
    }
    if (!refusal.plan.empty()) refusals += join(", ", refusal.plan, " ", refusal.why);
    if (choice.plan == nullptr) continue;
    choice.reason = rule + refusals + choice.reason;
    return choice;
  }
  throw Error(broken ? ErrorKind::device : ErrorKind::config,
              join("no convolution engine can do ", to_string(pass), " of ", to_string(problem), refusals));
}

ConvTuner::Choice ConvTuner::by_name(Context* ctx, const ConvProblem& problem, ConvPass pass, const std::string& name) {
  const std::size_t colon = name.find(':');
  const ConvEngine& named = engine(name.substr(0, colon));
  Refusal refusal;
  Choice choice;
  if (colon == std::string::npos) {
    choice = first_that_holds(ctx, problem, pass, named, refusal);
  } else {
    choice.plan = plan_named(named, problem, pass, name.substr(colon + 1));
    refusal.why = why_not(ctx, problem, pass, choice);
    if (!refusal.why.empty()) choice.plan = nullptr;
  }
  if (choice.plan == nullptr) throw refused(problem, pass, name, refusal.why);
  choice.reason = "named" + choice.reason;
  return choice;
}

ConvTuner::Plan ConvTuner::plan_named(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass,
                                      const std::string& name) {
  if (Plan plan = engine.plan(problem, pass, name)) return plan;
  std::vector<std::string> plans;
  for (const Plan& each : engine.plans(problem, pass)) plans.push_back(each->facts().name);
  throw Error(ErrorKind::config,
              join("'", name, "' is no plan of the convolution engine '", engine.name(), "' for ", to_string(pass),
                   " of ", to_string(problem), "; its plans: ", plans.empty() ? "none" : join_names(plans)));
}

// Where nothing speaks against its plans, it has none.
Error ConvTuner::refused(const ConvProblem& problem, ConvPass pass, const std::string& name, const std::string& why) {
  const std::string what = join(to_string(pass), " of ", to_string(problem));
  std::vector<std::string> others;
  std::string none;
  for (const auto& other : engines_) try {
      if (why.empty() && other->name() == name && !other->refusal(problem, pass).empty())
        none = ": " + other->refusal(problem, pass);
      Refusal ignored;
      if (first_that_holds(nullptr, problem, pass, *other, ignored).plan) others.emplace_back(other->name());
    } catch (const Error& error) {
      warn_of(*other, error);
    }
  return Error(ErrorKind::config, join("convolution engine '", name, "' ",
                                       why.empty() ? join("cannot do ", what, none) : join(why, ", for ", what),
                                       "; engines that can: ", others.empty() ? "none" : join_names(others)));
}

// One engine whose library is missing, say, is no reason to do without the others. Each reason is told once.
void ConvTuner::warn_of(const ConvEngine& engine, const Error& error) {
  if (policy_.warn && warned_.insert(error.what()).second)
    policy_.warn(fmt::format("convolution engine '{}' is left out, others are used: {}", engine.name(), error.what()));
}

std::vector<ConvEngine*> ConvTuner::contenders(const std::string& how) {
  if (how != measured) return {&engine(how.substr(measured.size() + 1))};
  std::vector<ConvEngine*> all;
  for (const auto& engine : engines_) all.push_back(engine.get());
  return all;
}

ChoiceKey ConvTuner::cache_key(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& how,
                               bool forward_alone) {
  std::string among;
  for (const ConvEngine* engine : contenders(how)) among += fmt::format("{}({}) ", engine->name(), library_of(*engine));
  among += fmt::format("frequency_budget {} {}", policy_.frequency_budget, forward_alone ? "forward alone " : "");
  return choice_key(device, problem, pass, policy_.workspace_limit, among);
}

ConvTuner::Plan ConvTuner::same_plan(const std::string& name, const ConvProblem& problem, ConvPass pass) const try {
  const std::size_t colon = name.find(':');
  for (const auto& engine : engines_) {
    if (engine->name() != name.substr(0, colon)) continue;
    Plan plan = engine->plan(problem, pass, colon == std::string::npos ? "" : name.substr(colon + 1));
    Choice choice{std::move(plan)};
    return choice.plan != nullptr && why_not(nullptr, problem, pass, choice).empty() ? choice.plan : nullptr;
  }
  return nullptr;
} catch (const Error&) {
  return nullptr;
}

ConvTuner::Choice ConvTuner::of_another_batch(const ConvProblem& problem, ConvPass pass, const std::string& how,
                                              bool forward_alone) const {
  const Choice* nearest = nullptr;
  int batch = 0;
  for (const auto& [key, choice] : choices_) {
    const auto& [its_how, other, its_pass] = key;
    if (its_how != how || its_pass != pass || other.batch == problem.batch || choice.forward_alone != forward_alone ||
        at_batch(other, problem.batch) != problem || other.batch < batch)
      continue;
    nearest = &choice, batch = other.batch;
  }
  if (nearest == nullptr) return {};
  return {same_plan(full_name(*nearest->plan), problem, pass), join("as at batch ", batch), 0, forward_alone};
}

ConvTuner::Choice ConvTuner::known(const Device& device, const ConvProblem& problem, ConvPass pass,
                                   const std::string& how, bool forward_alone) {
  const ChoiceKey key = cache_key(device, problem, pass, how, forward_alone);
  if (const auto exact = cache_.find(key))
    if (Plan plan = same_plan(exact->choice, problem, pass))
      return {std::move(plan), "cached", exact->milliseconds, forward_alone};
  if (policy_.own_batch) return {};
  if (Choice other = of_another_batch(problem, pass, how, forward_alone); other.plan != nullptr) return other;
  if (const auto other = cache_.find_other_batch(key))
    if (Plan plan = same_plan(other->choice, problem, pass))
      return {std::move(plan), "cached, for another batch", 0, forward_alone};
  return {};
}

ConvTuner::Choice ConvTuner::by_measurement(Context& ctx, const ConvProblem& problem, ConvPass pass,
                                            const std::string& how) {
  const bool evaluates = !ctx.training;  // and has no other passes
  for (const bool forward_alone : {false, true}) {
    if (forward_alone && !evaluates) continue;
    Choice choice = known(ctx.stream->device(), problem, pass, how, forward_alone);
    if (choice.plan != nullptr && why_not(&ctx, problem, pass, choice).empty()) return choice;
  }

  std::vector<ConvPass> passes{pass};
  if (!evaluates && problem.in_training(pass)) {
    passes.assign(std::begin(every_pass), std::end(every_pass));
    std::erase_if(passes, [&](ConvPass each) { return !problem.in_training(each); });
  }
  std::optional<ContestResult> result = hold_contest(ctx, problem, passes, how);
  if (!result) {
    Choice unmeasured = how == measured ? by_rule(nullptr, problem, pass)
                                        : by_name(nullptr, problem, pass, how.substr(measured.size() + 1));
    unmeasured.reason += ", not measured: no room for that";
    unmeasured.holds = true;
    return unmeasured;
  }
  for (const ConvPass each : passes)
    choices_.insert_or_assign(key_of(problem, each, how),
                              outcome(ctx, problem, each, how, std::move(result->passes[index_of(each)])));
  return choices_.at(key_of(problem, pass, how));
}

// Nothing where the rehearsal finds no room; the passes themselves may find it.
std::optional<ContestResult> ConvTuner::hold_contest(Context& ctx, const ConvProblem& problem,
                                                     const std::vector<ConvPass>& passes, const std::string& how) {
  const std::shared_ptr<Measuring>& measuring = policy_.measuring;
  const auto between_two = [&] {
    if (measuring) measuring->between_two();
  };
  const auto failed = [&](const ConvEngine& engine, const Error& error) { warn_of(engine, error); };
  const Contest::Rules rules{policy_.workspace_limit, policy_.deterministic, false, between_two, failed};
  if (measuring) measuring->begin(to_string(problem));
  std::optional<ContestResult> result;
  try {
    result = Contest(ctx, problem, passes, contenders(how), rules, *stopwatch_).hold();
  } catch (const OutOfMemory&) {
    forget_rehearsals(ctx);
  }
  if (measuring) measuring->end();
  return result;
}

// What is chosen by a contest of a pass, and kept for the next time.
ConvTuner::Choice ConvTuner::outcome(Context& ctx, const ConvProblem& problem, ConvPass pass, const std::string& how,
                                     ContestResult::Pass result) {
  if (result.winner == nullptr && how != measured)
    throw refused(problem, pass, how, result.entrants.empty() ? "" : result.reason);
  if (result.winner == nullptr) {
    Choice choice = by_rule(&ctx, problem, pass);
    choice.reason = std::move(result.reason);
    return choice;
  }
  const bool coupled = std::any_of(result.entrants.begin(), result.entrants.end(),
                                   [](const Entrant& entrant) { return !entrant.facts.shares.empty(); });
  const bool forward_alone = !ctx.training && coupled;
  if (result.doubtful)
    result.reason += ", not kept: its repeats disagree";
  else
    cache_.store(cache_key(ctx.stream->device(), problem, pass, how, forward_alone),
                 {full_name(*result.winner), result.milliseconds});
  for (Entrant& entrant : result.entrants) entrant.plan = nullptr;  // a library's may hold memory of the device
  return {std::move(result.winner),  std::move(result.reason), result.milliseconds, forward_alone, true,
          std::move(result.entrants)};
}

}  // namespace twiddle
