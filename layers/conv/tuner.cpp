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

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
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

ConvTuner::Named ConvTuner::parse(const std::string& name) {
  const std::size_t colon = name.find(':');
  return {engine(name.substr(0, colon)), colon == std::string::npos ? "" : name.substr(colon + 1)};
}

bool ConvTuner::may_run(const ConvPlan& plan) const {
  return plan.facts().scratch_bytes <= policy_.workspace_limit &&
         (plan.facts().deterministic || !policy_.deterministic);
}

// One engine whose library is missing, say, is no reason to do without the others. Each reason is told once.
ConvPlans ConvTuner::plans_of(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass, std::size_t most,
                              std::string& failures) try {
  ConvPlans plans = engine.plans(problem, pass, most);
  std::erase_if(plans, [&](const Plan& plan) { return !may_run(*plan); });
  return plans;
} catch (const Error& error) {
  failures += fmt::format(", {} failed: {}", engine.name(), first_line(error.what()));
  warn_of(engine, error);
  return {};
}

void ConvTuner::warn_of(const ConvEngine& engine, const Error& error) {
  if (policy_.warn && warned_.insert(error.what()).second)
    policy_.warn(fmt::format("convolution engine '{}' is left out, others are used: {}", engine.name(), error.what()));
}

ConvTuner::Choice ConvTuner::by_rule(Context* ctx, const ConvProblem& problem, ConvPass pass) {
  std::string failures;
  for (const auto& engine : engines_) {
    if (!engine->pays(problem)) continue;
    // As a rule the first will do, and others may be costly to make.
    std::string refused_first;
    for (const std::size_t most : {std::size_t(1), ConvEngine::all_plans})
      for (Plan& plan : plans_of(*engine, problem, pass, most, failures)) {
        if (full_name(*plan) == refused_first) continue;
        Choice choice{std::move(plan), rule + failures};
        const std::string why = ctx == nullptr ? "" : why_not(*ctx, problem, pass, choice);
        if (why.empty()) return choice;
        failures += fmt::format(", {} {}", full_name(*choice.plan), why);
        if (most == 1) refused_first = full_name(*choice.plan);
      }
  }
  throw Error(failures.empty() ? ErrorKind::config : ErrorKind::device,
              join("no convolution engine can do ", to_string(pass), " of ", to_string(problem),
                   " within a workspace_limit of ", format_bytes(policy_.workspace_limit), failures));
}

std::string ConvTuner::why_not(Context& ctx, const ConvProblem& problem, ConvPass pass, Choice& choice) {
  choice.holds = true;
  if (choice.plan->facts().exact) return {};
  try {
    double error = 0;
    return PassTrial(ctx, problem, pass).why_not(*choice.plan, error);
  } catch (const OutOfMemory&) {       // no room for a rehearsal is no reason against the plan
    if (policy_.deterministic) throw;  // what is taken is not to depend on what room there is
    choice.reason += ", not held to its precision: no room for that";
    return {};
  } catch (const Error& error) {
    return "failed: " + first_line(error.what());
  }
}

ConvTuner::Choice ConvTuner::by_name(Context* ctx, const ConvProblem& problem, ConvPass pass, const std::string& name) {
  const Named named = parse(name);
  std::string why;
  const auto tried = [&](Plan plan) {
    Choice choice{std::move(plan), "named"};
    const ConvPlan::Facts& facts = choice.plan->facts();
    if (facts.scratch_bytes > policy_.workspace_limit)
      why = join("needs ", format_bytes(facts.scratch_bytes), " of workspace for ", to_string(pass), " of ",
                 to_string(problem), ", more than the workspace_limit of ", format_bytes(policy_.workspace_limit));
    else if (!may_run(*choice.plan))
      why = "gives other bits in each run, which `deterministic: true` rules out";
    else
      why = ctx == nullptr ? "" : why_not(*ctx, problem, pass, choice);
    return choice;
  };
  if (!named.plan.empty()) {
    Plan plan = named.engine.plan(problem, pass, named.plan);
    if (plan == nullptr) {
      std::vector<std::string> plans;
      for (const Plan& each : named.engine.plans(problem, pass)) plans.push_back(each->facts().name);
      throw Error(ErrorKind::config, join("'", named.plan, "' is no plan of the convolution engine '",
                                          named.engine.name(), "' for ", to_string(pass), " of ", to_string(problem),
                                          "; its plans: ", plans.empty() ? "none" : join_names(plans)));
    }
    Choice choice = tried(std::move(plan));
    if (!why.empty()) throw Error(ErrorKind::config, refused(problem, pass, name, why));
    return choice;
  }
  std::string first, tried_first;
  for (const std::size_t most : {std::size_t(1), ConvEngine::all_plans})
    for (Plan& plan : named.engine.plans(problem, pass, most)) {
      if (full_name(*plan) == tried_first) continue;
      Choice choice = tried(std::move(plan));
      if (why.empty()) return choice;
      if (first.empty()) first = why, tried_first = full_name(*choice.plan);
    }
  if (first.empty()) {
    const std::string reason = named.engine.refusal(problem, pass);
    first = join("cannot do ", to_string(pass), " of ", to_string(problem), reason.empty() ? "" : ": ", reason);
  }
  throw Error(ErrorKind::config, refused(problem, pass, name, first));
}

std::string ConvTuner::refused(const ConvProblem& problem, ConvPass pass, const std::string& name,
                               const std::string& why) {
  std::vector<std::string> others;
  std::string ignored;
  for (const auto& other : engines_)
    if (!plans_of(*other, problem, pass, 1, ignored).empty()) others.emplace_back(other->name());
  return join("convolution engine '", name, "' ", why,
              "; engines that can: ", others.empty() ? "none" : join_names(others));
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
    return plan != nullptr && may_run(*plan) ? plan : nullptr;
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
  const Device device = ctx.stream->device();
  const bool evaluates = !ctx.training;  // and has no other passes
  for (const bool forward_alone : {false, true}) {
    if (forward_alone && !evaluates) continue;
    Choice choice = known(device, problem, pass, how, forward_alone);
    if (choice.plan != nullptr && why_not(ctx, problem, pass, choice).empty()) return choice;
  }

  std::vector<ConvPass> passes{pass};
  if (!evaluates && problem.in_training(pass)) {
    passes.assign(std::begin(every_pass), std::end(every_pass));
    std::erase_if(passes, [&](ConvPass each) { return !problem.in_training(each); });
  }
  const auto& measuring = policy_.measuring;
  const auto between_two = [&] {
    if (measuring) measuring->between_two();
  };
  if (measuring) measuring->begin(to_string(problem));
  ContestResult result;
  try {
    const auto failed = [&](const ConvEngine& engine, const Error& error) { warn_of(engine, error); };
    result = Contest(ctx, problem, passes, contenders(how),
                     {.workspace_limit = policy_.workspace_limit,
                      .deterministic = policy_.deterministic,
                      .between_two = between_two,
                      .failed = failed},
                     *stopwatch_)
                 .hold();
  } catch (const OutOfMemory&) {  // for the rehearsal; the pass itself may find room
    if (measuring) measuring->end();
    forget_rehearsals(ctx);
    Choice unmeasured = how == measured ? by_rule(nullptr, problem, pass)
                                        : by_name(nullptr, problem, pass, how.substr(measured.size() + 1));
    unmeasured.reason += ", not measured: no room for that";
    unmeasured.holds = true;
    return unmeasured;
  }
  if (measuring) measuring->end();

  for (const ConvPass each : passes) {
    ContestResult::Pass& here = result.passes[index_of(each)];
    if (here.winner == nullptr && how != measured) {
      const std::string why =
          here.entrants.empty() ? join("cannot do ", to_string(each), " of ", to_string(problem)) : here.reason;
      throw Error(ErrorKind::config, refused(problem, each, how, why));
    }
    if (here.winner == nullptr) {
      choices_.insert_or_assign(key_of(problem, each, how), last_resort(ctx, problem, each, here.reason));
      continue;
    }
    const bool coupled = std::any_of(here.entrants.begin(), here.entrants.end(),
                                     [](const Entrant& entrant) { return !entrant.facts.shares.empty(); });
    for (Entrant& entrant : here.entrants) entrant.plan = nullptr;  // a library's may hold memory of the device
    const bool forward_alone = evaluates && coupled;
    if (result.doubtful)
      here.reason += ", not kept: its repeats disagree";
    else
      cache_.store(cache_key(device, problem, each, how, forward_alone), {full_name(*here.winner), here.milliseconds});
    choices_.insert_or_assign(key_of(problem, each, how), Choice{here.winner, here.reason, here.milliseconds,
                                                                 forward_alone, true, std::move(here.entrants)});
  }
  return choices_.at(key_of(problem, pass, how));
}

// What nothing else can do is left to sums in double, or where there are none to what the rule takes.
ConvTuner::Choice ConvTuner::last_resort(Context& ctx, const ConvProblem& problem, ConvPass pass, std::string reason) {
  std::string ignored;
  for (const auto& engine : engines_)
    for (Plan& plan : plans_of(*engine, problem, pass, 1, ignored))
      if (plan->facts().exact) return {.plan = std::move(plan), .reason = std::move(reason), .holds = true};
  Choice choice = by_rule(&ctx, problem, pass);
  choice.reason = std::move(reason);
  return choice;
}

}  // namespace twiddle
