#include "layers/conv/selector.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/measure.h"

namespace twiddle {

namespace {

const std::string rule = "rule", measured = "measured";
constexpr double step_budget_ms = 50, repeat_budget_ms = 10;
constexpr double most_apart = 1.5;  // the winner of one turn in the other: beyond, something else was at work

// The oracle sums in double and is no contender: it is taken where nothing else can.
bool is_last_resort(const ConvEngine& engine) {
  return engine.name() == "direct";
}

// Where it cannot be loaded, it has no version.
std::string library_of(const ConvEngine& engine) try { return engine.library(); } catch (const Error&) {
  return "missing";
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::shared_ptr<ChoiceCache> open_cache(const ConvPolicy& policy) {
  return std::make_shared<ChoiceCache>(policy.cache_file, policy.warn, policy.retune, policy.build);
}

ConvSelector::ConvSelector(std::vector<std::unique_ptr<ConvEngine>> engines, ConvPolicy policy,
                           std::shared_ptr<ChoiceCache> cache)
    : engines_(std::move(engines)),
      policy_(std::move(policy)),
      cache_(cache ? std::move(cache) : open_cache(policy_)) {}

ConvEngine& ConvSelector::choose(Context& ctx, const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  const Key key = key_of(problem, pass, engine);
  const auto known = choices_.find(key);
  if (known != choices_.end() && !(ctx.training && known->second.forward_alone)) {
    if (std::exchange(known->second.recalled, false)) known->second.engine->tune(ctx, problem);
    return *known->second.engine;
  }
  const std::string& how = std::get<0>(key);
  Choice choice = how == rule       ? by_rule(problem, pass)
                  : how == measured ? by_measurement(ctx, problem, pass)
                                    : by_name(problem, pass, how);
  if (how == measured) choice.engine->tune(ctx, problem);  // is done already, unless the choice is from the cache
  if (how == measured && choice.reason != "cached") {      // what was tried leaves the memory as it was
    for (const auto& tried : engines_) tried->forget();
    ctx.stream->release_unused();
  }
  return *choices_.insert_or_assign(key, std::move(choice)).first->second.engine;
}

bool ConvSelector::recall(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  const Key key = key_of(problem, pass, engine);
  if (std::get<0>(key) != measured) return true;
  if (const Choice* chosen = find(problem, pass, engine); chosen != nullptr && !chosen->forward_alone) return true;
  auto known = cached(device, problem, pass);
  if (!known) return false;
  known->recalled = true;
  choices_.insert_or_assign(key, *std::move(known));
  return true;
}

const ConvSelector::Choice* ConvSelector::find(const ConvProblem& problem, ConvPass pass,
                                               const std::string& engine) const {
  const auto known = choices_.find(key_of(problem, pass, engine));
  return known == choices_.end() ? nullptr : &known->second;
}

std::size_t ConvSelector::workspace_bytes(const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  return expected(problem, pass, engine).workspace_bytes(problem, pass);
}

std::size_t ConvSelector::kept_bytes(const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  return expected(problem, pass, engine).kept_bytes(problem, pass);
}

const ConvEngine& ConvSelector::expected(const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  if (const Choice* known = find(problem, pass, engine)) return *known->engine;
  const std::string& how = engine.empty() ? policy_.engine : engine;
  return *(how == rule || how == measured ? by_rule(problem, pass) : by_name(problem, pass, how)).engine;
}

void ConvSelector::check_name(const std::string& engine) const {
  if (engines_.empty()) return;
  std::vector<std::string> known = names();
  known.insert(known.begin(), {rule, measured});
  if (std::find(known.begin(), known.end(), engine) == known.end())
    throw Error(ErrorKind::config, unknown_name("convolution engine", engine, known));
}

std::vector<std::string> ConvSelector::names() const {
  std::vector<std::string> all;
  for (const auto& engine : engines_) all.emplace_back(engine->name());
  return all;
}

ConvEngine& ConvSelector::engine(const std::string& name) {
  const auto found =
      std::find_if(engines_.begin(), engines_.end(), [&](const auto& engine) { return engine->name() == name; });
  if (found == engines_.end()) throw Error(ErrorKind::config, unknown_name("convolution engine", name, names()));
  return **found;
}

ConvSelector::Key ConvSelector::key_of(const ConvProblem& problem, ConvPass pass, const std::string& engine) const {
  return {engine.empty() ? policy_.engine : engine, problem, pass};
}

// One engine whose library is missing, say, is no reason to do without the others. Each reason is told once.
bool ConvSelector::usable(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass,
                          std::string& failures) try {
  return engine.supports(problem, pass) && engine.workspace_bytes(problem, pass) <= policy_.workspace_limit;
} catch (const Error& error) {
  failures += fmt::format(", {} failed: {}", engine.name(), first_line(error.what()));
  if (policy_.warn && warned_.insert(error.what()).second)
    policy_.warn(fmt::format("convolution engine '{}' is left out, others are used: {}", engine.name(), error.what()));
  return false;
}

bool ConvSelector::usable(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass) {
  std::string failures;
  return usable(engine, problem, pass, failures);
}

ConvSelector::Choice ConvSelector::by_rule(const ConvProblem& problem, ConvPass pass) {
  std::string failures;
  for (const auto& engine : engines_)
    if (!engine->by_name_only() && engine->pays(problem) && usable(*engine, problem, pass, failures))
      return {engine.get(), rule + failures};
  throw Error(failures.empty() ? ErrorKind::config : ErrorKind::device,
              join("no convolution engine can do ", to_string(pass), " of ", to_string(problem),
                   " within a workspace_limit of ", format_bytes(policy_.workspace_limit), failures));
}

ConvSelector::Choice ConvSelector::by_name(const ConvProblem& problem, ConvPass pass, const std::string& name) {
  ConvEngine& named = engine(name);
  const auto refuse = [&](const std::string& why) {
    std::vector<std::string> others;
    for (const auto& other : engines_)
      if (usable(*other, problem, pass)) others.emplace_back(other->name());
    throw Error(ErrorKind::config, join("convolution engine '", name, "' ", why,
                                        "; engines that can: ", others.empty() ? "none" : join_names(others)));
  };
  if (!named.supports(problem, pass)) {
    const std::string reason = named.refusal(problem, pass);
    refuse(join("cannot do ", to_string(pass), " of ", to_string(problem), reason.empty() ? "" : ": ", reason));
  }
  const std::size_t workspace = named.workspace_bytes(problem, pass);
  if (workspace > policy_.workspace_limit)
    refuse(join("needs ", format_bytes(workspace), " of workspace for ", to_string(pass), " of ", to_string(problem),
                ", more than the workspace_limit of ", format_bytes(policy_.workspace_limit)));
  return {&named, "named"};
}

std::string ConvSelector::cache_key(const Device& device, const ConvProblem& problem, ConvPass pass,
                                    bool forward_alone) const {
  std::string contenders;
  for (const auto& engine : engines_)
    if (!engine->by_name_only()) contenders += fmt::format("{}({}) ", engine->name(), library_of(*engine));
  contenders += fmt::format("frequency_budget {} {}", policy_.frequency_budget, forward_alone ? "forward alone " : "");
  return choice_key(device, problem, pass, policy_.workspace_limit, contenders);
}

std::optional<ConvSelector::Choice> ConvSelector::cached(const Device& device, const ConvProblem& problem,
                                                         ConvPass pass, bool forward_alone) {
  if (const auto known = cache_->find(cache_key(device, problem, pass, forward_alone)))
    for (const auto& engine : engines_)
      if (engine->name() == known->choice && usable(*engine, problem, pass))
        return Choice{engine.get(), "cached", known->milliseconds, forward_alone};
  return {};
}

ConvSelector::Choice ConvSelector::by_measurement(Context& ctx, const ConvProblem& problem, ConvPass pass) {
  const Device device = ctx.stream->device();
  if (const auto known = cached(device, problem, pass)) return *known;
  const bool evaluates = !ctx.training;  // and has no other passes
  if (evaluates)
    if (const auto known = cached(device, problem, pass, true)) return *known;

  const Contest own = hold_contest(ctx, problem, pass);
  const bool coupled = std::any_of(own.times.begin(), own.times.end(),
                                   [](const auto& entry) { return entry.second->shares_work_between_passes(); });
  if (!coupled || evaluates || !problem.in_training(pass)) {
    Choice choice = winner(problem, pass, own);
    choice.forward_alone = coupled && evaluates;
    keep(ctx, problem, pass, own, choice);
    return choice;
  }
  std::array<Contest, 3> contests;
  std::array<Choice, 3> choices;
  double apart = 0;
  for (const ConvPass each : every_pass) {
    if (!problem.in_training(each)) continue;
    const auto index = static_cast<std::size_t>(each);
    contests[index] = each == pass ? own : hold_contest(ctx, problem, each);
    choices[index] = winner(problem, each, contests[index]);
    apart += choices[index].milliseconds;
  }
  take_one_for_all(ctx, problem, contests, apart, choices);
  for (const ConvPass each : every_pass) {
    if (!problem.in_training(each)) continue;
    const auto index = static_cast<std::size_t>(each);
    keep(ctx, problem, each, contests[index], choices[index]);
    if (each != pass) choices_.insert_or_assign(key_of(problem, each, measured), choices[index]);
  }
  return choices[static_cast<std::size_t>(pass)];
}

ConvSelector::Contest ConvSelector::hold_contest(Context& ctx, const ConvProblem& problem, ConvPass pass) {
  Contest contest;
  if (policy_.measuring) policy_.measuring->begin(join(to_string(pass), " of ", to_string(problem)));
  for (const auto& engine : engines_)
    if (!engine->by_name_only() && !is_last_resort(*engine) && usable(*engine, problem, pass, contest.dropped))
      enter(ctx, *engine, problem, pass, contest);
  if (contest.times.size() > 1) repeat(ctx, problem, pass, contest);
  std::stable_sort(contest.times.begin(), contest.times.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (policy_.measuring) policy_.measuring->end();
  return contest;
}

void ConvSelector::enter(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass,
                         Contest& contest) {
  between_two_measurements();
  const Measurement result = measure_tuned(ctx, engine, problem, pass);
  if (result.error <= promise(problem.precision))
    contest.times.emplace_back(result.milliseconds, &engine);
  else if (result.failure.empty())
    contest.dropped += fmt::format(", {} misses {} with an error of {:.1e}", engine.name(),
                                   to_string(problem.precision), result.error);
  else
    contest.dropped += fmt::format(", {} failed: {}", engine.name(), result.failure);
}

// Each engine once more, a while after its first turn: what kept the machine busy then shows as another winner.
void ConvSelector::repeat(Context& ctx, const ConvProblem& problem, ConvPass pass, Contest& contest) {
  std::vector<double> first, second;
  for (auto& [milliseconds, engine] : contest.times) {
    between_two_measurements();
    first.push_back(milliseconds);
    second.push_back(time_pass(ctx, *engine, problem, pass, repeat_budget_ms));
    milliseconds = std::min(first.back(), second.back());
  }
  const auto fastest = [](const std::vector<double>& turn) {
    return static_cast<std::size_t>(std::min_element(turn.begin(), turn.end()) - turn.begin());
  };
  const auto lost = [&](const std::vector<double>& turn, std::size_t engine) {
    return turn[engine] > most_apart * turn[fastest(turn)];
  };
  contest.doubtful = lost(second, fastest(first)) || lost(first, fastest(second));
}

void ConvSelector::between_two_measurements() const {
  if (policy_.measuring) policy_.measuring->between_two();
}

ConvSelector::Choice ConvSelector::winner(const ConvProblem& problem, ConvPass pass, const Contest& contest) {
  const auto& times = contest.times;
  if (times.empty()) {
    Choice choice = by_rule(problem, pass);
    for (const auto& engine : engines_)
      if (is_last_resort(*engine) && usable(*engine, problem, pass)) choice.engine = engine.get();
    choice.reason = "nothing else keeps the precision" + contest.dropped;
    return choice;
  }
  Choice choice{times[0].second, fmt::format("measured {:.2f} ms", times[0].first), times[0].first};
  if (times.size() > 1) choice.reason += fmt::format(", next {} {:.2f}", times[1].second->name(), times[1].first);
  choice.reason += contest.dropped;
  if (contest.doubtful) choice.reason += ", not kept: its repeats disagree";
  return choice;
}

// An engine whose passes help each other may win all of training's together without winning each.
void ConvSelector::take_one_for_all(Context& ctx, const ConvProblem& problem, const std::array<Contest, 3>& contests,
                                    double apart, std::array<Choice, 3>& choices) const {
  double least = apart;
  for (const auto& engine : engines_) {
    const auto took_part = [&](ConvPass pass) {
      const auto& times = contests[static_cast<std::size_t>(pass)].times;
      return !problem.in_training(pass) ||
             std::any_of(times.begin(), times.end(), [&](const auto& entry) { return entry.second == engine.get(); });
    };
    if (!engine->shares_work_between_passes() || !std::all_of(std::begin(every_pass), std::end(every_pass), took_part))
      continue;
    between_two_measurements();
    std::array<double, 3> times;
    try {
      times = measure_step(ctx, *engine, problem, step_budget_ms);
    } catch (const Error&) {  // one pass had room, all three together have not
      continue;
    }
    if (times[0] + times[1] + times[2] >= least) continue;
    least = times[0] + times[1] + times[2];
    for (const ConvPass pass : every_pass) {
      if (!problem.in_training(pass)) continue;
      const auto index = static_cast<std::size_t>(pass);
      choices[index] = {engine.get(),
                        fmt::format("measured {:.2f} ms beside its other passes, {} {:.2f}, the best apart {:.2f}",
                                    times[index], problem.input_gradient ? "all three" : "both", least, apart) +
                            contests[index].dropped,
                        times[index]};
    }
  }
}

// What nobody won is not kept, nor what may come out otherwise on a quieter machine.
void ConvSelector::keep(Context& ctx, const ConvProblem& problem, ConvPass pass, const Contest& contest,
                        const Choice& choice) {
  if (!contest.times.empty() && !contest.doubtful)
    cache_->store(cache_key(ctx.stream->device(), problem, pass, choice.forward_alone),
                  {std::string(choice.engine->name()), choice.milliseconds});
}

}  // namespace twiddle
