#include "layers/conv/tuner/tuner.h"

#include <algorithm>
#include <array>

#include "framework/context.h"
#include "framework/error.h"
#include "framework/text.h"
#include "layers/conv/cast_around.h"
#include "layers/conv/tuner/measuring.h"

namespace twiddle {

namespace {

constexpr std::array gpu_engines{"cudnn", "cufft", "depthwise_fft", "fbfft", "implicit_gemm", "pairs"};

const std::string rule = "rule", measured = "measured", measured_among = "measured:";

bool is_measured(const std::string& how) {
  return how == measured || how.starts_with(measured_among);
}

// "rule" of "measured", "cudnn" of "measured:cudnn"; what is not measured as it is.
std::string without_clock(const std::string& how) {
  if (how == measured) return rule;
  return is_measured(how) ? how.substr(measured_among.size()) : how;
}

// "fbfft:32x32, tiles": the engine's name, and the plan's; of an engine alone the plan's is empty.
std::pair<std::string, std::string> parts_of(const std::string& full_name) {
  const std::size_t colon = full_name.find(':');
  return {full_name.substr(0, colon), colon == std::string::npos ? "" : full_name.substr(colon + 1)};
}

std::string what(const ConvProblem& problem, ConvPass pass) {
  return join(to_string(pass), " of ", to_string(problem));
}

}  // namespace

ConvTuner::ConvTuner(std::vector<std::unique_ptr<ConvEngine>> engines, ConvPolicy policy)
    : engines_(std::move(engines)),
      policy_(std::move(policy)),
      cache_(policy_.cache_file, policy_.warn, policy_.retune) {
  if (storage_of(policy_.precision) == DType::f32) return;
  for (auto& engine : engines_) engine = cast_around(std::move(engine));
}

ConvTuner::Question ConvTuner::question(const ConvProblem& problem, ConvPass pass, const std::string& engine) const {
  return {engine.empty() ? policy_.engine : engine, problem, pass};
}

const ConvTuner::Choice& ConvTuner::choose(Context& ctx, const ConvProblem& problem, ConvPass pass,
                                           const std::string& engine) {
  const Question asked = question(problem, pass, engine);
  const auto known = choices_.find(asked);
  if (known != choices_.end() && known->second.holds && !(ctx.training && known->second.forward_alone))
    return known->second;
  Choice choice = is_measured(asked.how) ? by_measurement(ctx, asked) : unmeasured(&ctx, asked);
  forget_trial_runs(ctx);
  return choices_.insert_or_assign(asked, std::move(choice)).first->second;
}

// What was tried leaves the memory as it was. In evaluation the weights' spectra stay, which other layers have left.
void ConvTuner::forget_trial_runs(Context& ctx) {
  ctx.training ? forget() : forget_gone();
  ctx.stream->release_unused();
}

void ConvTuner::forget_gone() {
  for (const auto& engine : engines_) engine->forget_gone();
}

void ConvTuner::forget() {
  for (const auto& engine : engines_) engine->forget();
}

bool ConvTuner::recall(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  const Question asked = question(problem, pass, engine);
  if (!is_measured(asked.how)) return true;
  if (const Choice* chosen = find(problem, pass, engine); chosen != nullptr && !chosen->forward_alone) return true;
  Choice found = known(device, asked, false);
  if (found.plan == nullptr) return false;
  choices_.insert_or_assign(asked, std::move(found));
  return true;
}

void ConvTuner::adopt(const ConvProblem& problem, ConvPass pass, const std::string& engine,
                      const std::string& full_name) {
  adopted_[question(problem, pass, engine)] = full_name;
}

bool ConvTuner::measures(const std::string& engine) const {
  return is_measured(engine.empty() ? policy_.engine : engine);
}

const ConvTuner::Choice* ConvTuner::find(const ConvProblem& problem, ConvPass pass, const std::string& engine) const {
  const auto known = choices_.find(question(problem, pass, engine));
  return known == choices_.end() ? nullptr : &known->second;
}

ConvTuner::Plan ConvTuner::expected(const ConvProblem& problem, ConvPass pass, const std::string& engine) {
  if (const Choice* known = find(problem, pass, engine)) return known->plan;
  const Question asked = question(problem, pass, engine);
  if (const Choice other = of_another_batch(asked, false); is_measured(asked.how) && other.plan != nullptr)
    return other.plan;
  return unmeasured(nullptr, asked).plan;
}

void ConvTuner::check_name(const std::string& engine) const {
  if (engines_.empty() || engine == rule || engine == measured) return;
  const std::string name = is_measured(engine) ? without_clock(engine) : parts_of(engine).first;
  if (find_engine(name) != nullptr) return;
  std::vector<std::string> known = names();
  known.insert(known.begin(), {rule, measured});
  if (std::find(gpu_engines.begin(), gpu_engines.end(), name) == gpu_engines.end())
    throw Error(ErrorKind::config, unknown_name("convolution engine", name, known));
  throw Error(ErrorKind::config,
              join("convolution engine '", name, "' needs a GPU and a build with ",
                   name == gpu_engines[0] ? "cuDNN" : "CUDA", "; known here are: ", join_names(known)));
}

std::vector<std::string> ConvTuner::names() const {
  std::vector<std::string> all;
  for (const auto& engine : engines_) all.emplace_back(engine->name());
  return all;
}

ConvEngine* ConvTuner::find_engine(const std::string& name) const {
  for (const auto& engine : engines_)
    if (engine->name() == name) return engine.get();
  return nullptr;
}

ConvEngine& ConvTuner::engine(const std::string& name) {
  if (ConvEngine* const found = find_engine(name)) return *found;
  throw Error(ErrorKind::config, unknown_name("convolution engine", name, names()));
}

ConvTuner::Choice ConvTuner::unmeasured(Context* ctx, Question question) {
  question.how = without_clock(question.how);
  return question.how == rule ? by_rule(ctx, question) : by_name(ctx, question);
}

ConvTuner::Choice ConvTuner::by_rule(Context* ctx, const Question& question) {
  std::string refusals;
  bool broken = false;
  for (const auto& engine : engines_) {
    if (!engine->pays(question.problem)) continue;
    Refusal refusal;
    Choice choice;
    try {
      choice = first_that_holds(ctx, question, *engine, refusal);
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
              join("no convolution engine can do ", what(question.problem, question.pass), refusals));
}

ConvTuner::Choice ConvTuner::by_name(Context* ctx, const Question& question) {
  const auto [name, plan] = parts_of(question.how);
  const ConvEngine& named = engine(name);
  Refusal refusal;
  Choice choice;
  if (plan.empty()) {
    choice = first_that_holds(ctx, question, named, refusal);
  } else {
    choice.plan = plan_named(named, question, plan);
    refusal.why = why_not(ctx, question, choice);
  }
  if (choice.plan == nullptr || (!plan.empty() && !refusal.why.empty())) throw refused(question, refusal.why);
  choice.reason = "named" + choice.reason;
  return choice;
}

ConvTuner::Choice ConvTuner::first_that_holds(Context* ctx, const Question& question, const ConvEngine& engine,
                                              Refusal& refusal) const {
  // Usually the first plan is accepted, and others may be expensive to make.
  for (const std::size_t most : {std::size_t(1), ConvEngine::all_plans})
    for (Plan& plan : engine.plans(question.problem, question.pass, most)) {
      if (full_name(*plan) == refusal.plan) continue;
      Choice choice{std::move(plan)};
      std::string why = why_not(ctx, question, choice);
      if (why.empty()) return choice;
      if (refusal.plan.empty()) refusal = {full_name(*choice.plan), std::move(why)};
    }
  return {};
}

std::string ConvTuner::why_not(Context* ctx, const Question& question, Choice& choice) const {
  const ConvPlan::Facts& facts = choice.plan->facts();
  if (!facts.fits(policy_.workspace_limit))
    return join("needs ", format_bytes(facts.scratch_bytes - facts.cast_bytes),
                " of workspace, more than the workspace_limit of ", format_bytes(policy_.workspace_limit));
  if (policy_.deterministic && !facts.deterministic) return "is not deterministic, but `deterministic: true` is set";
  if (ctx == nullptr) return {};
  choice.holds = true;
  if (facts.exact) return {};
  try {
    double error = 0;
    return PassTrial(*ctx, question.problem, question.pass).why_not(*choice.plan, error);
  } catch (const OutOfMemory&) {       // too little memory for a trial run does not reject the plan
    if (policy_.deterministic) throw;  // the choice must not depend on free memory
    choice.reason += ", error not checked: not enough memory";
    return {};
  } catch (const Error& error) {
    return "failed: " + first_line(error.what());
  }
}

ConvTuner::Plan ConvTuner::plan_named(const ConvEngine& engine, const Question& question, const std::string& name) {
  if (Plan plan = engine.plan(question.problem, question.pass, name)) return plan;
  std::vector<std::string> plans;
  for (const Plan& each : engine.plans(question.problem, question.pass)) plans.push_back(each->facts().name);
  throw Error(ErrorKind::config,
              join("'", name, "' is not a plan of the convolution engine '", engine.name(), "' for ",
                   what(question.problem, question.pass), "; its plans: ", plans.empty() ? "none" : join_names(plans)));
}

// Where nothing speaks against its plans, it has none.
Error ConvTuner::refused(const Question& question, const std::string& why) {
  const std::string wanted = what(question.problem, question.pass);
  std::vector<std::string> others;
  std::string none;
  for (const auto& other : engines_) try {
      if (why.empty() && other->name() == question.how)
        if (const std::string cause = other->refusal(question.problem, question.pass); !cause.empty())
          none = ": " + cause;
      Refusal ignored;
      if (first_that_holds(nullptr, question, *other, ignored).plan) others.emplace_back(other->name());
    } catch (const Error& error) {
      warn_of(*other, error);
    }
  return Error(ErrorKind::config, join("convolution engine '", question.how, "' ",
                                       why.empty() ? join("cannot do ", wanted, none) : join(why, ", for ", wanted),
                                       "; engines that can: ", others.empty() ? "none" : join_names(others)));
}

// If one engine fails, such as for a missing library, the others are still used. Each reason is reported once.
void ConvTuner::warn_of(const ConvEngine& engine, const Error& error) {
  if (policy_.warn && warned_.insert(error.what()).second)
    policy_.warn(join("convolution engine '", engine.name(), "' is left out, others are used: ", error.what()));
}

ConvTuner::Choice ConvTuner::by_measurement(Context& ctx, const Question& question) {
  const bool evaluates = !ctx.training;  // and has no other passes
  for (const bool forward_alone : {false, true}) {
    if (forward_alone && !evaluates) continue;
    Choice choice = known(ctx.stream->device(), question, forward_alone);
    if (choice.plan != nullptr && why_not(&ctx, question, choice).empty()) return choice;
  }

  const ConvProblem& problem = question.problem;
  const bool trains = !evaluates && problem.in_training(question.pass);
  std::vector<ConvPass> passes;
  for (const ConvPass each : every_pass)
    if (each == question.pass || (trains && problem.in_training(each))) passes.push_back(each);
  std::optional<AutotunerResult> result = autotune(ctx, question, passes);
  if (!result) {
    Choice choice = unmeasured(nullptr, question);
    choice.reason += ", not measured: not enough memory";
    choice.holds = true;
    return choice;
  }
  std::vector<ChoiceCache::Line> lines;
  for (const ConvPass pass : passes) {
    const Question each{question.how, problem, pass};
    choices_.insert_or_assign(each, outcome(ctx, each, std::move(result->passes[index_of(pass)]), lines));
  }
  if (!lines.empty()) cache_.store(lines);
  return choices_.at(question);
}

// Returns nothing if memory is too small for the trial run; it may be enough for the passes.
std::optional<AutotunerResult> ConvTuner::autotune(Context& ctx, const Question& question,
                                                   const std::vector<ConvPass>& passes) {
  Autotuner::Rules rules{.workspace_limit = policy_.workspace_limit, .deterministic = policy_.deterministic};
  rules.failed = [&](const ConvEngine& engine, const Error& error) { warn_of(engine, error); };
  const std::shared_ptr<Measuring>& measuring = policy_.measuring;
  if (measuring) {
    rules.between_two = [&] { measuring->between_two(); };
    measuring->begin(to_string(question.problem));
  }
  std::optional<AutotunerResult> result;
  try {
    result = Autotuner(ctx, question.problem, passes, candidate_engines(question.how), rules).run();
  } catch (const OutOfMemory&) {
    forget_trial_runs(ctx);
  }
  if (measuring) measuring->end();
  return result;
}

ConvTuner::Choice ConvTuner::outcome(Context& ctx, const Question& question, AutotunerResult::Pass result,
                                     std::vector<ChoiceCache::Line>& lines) {
  if (result.winner == nullptr && question.how != measured)
    throw refused(question, result.candidates.empty() ? "" : result.reason);
  if (result.winner == nullptr) {
    Choice choice = by_rule(&ctx, question);
    choice.reason = std::move(result.reason);
    choice.measured = true;
    return choice;
  }
  const bool coupled = std::any_of(result.candidates.begin(), result.candidates.end(),
                                   [](const Candidate& candidate) { return !candidate.facts.shares.empty(); });
  const bool forward_alone = !ctx.training && coupled;
  if (result.doubtful)
    result.reason += ", not kept: its repeats disagree";
  else if (result.short_of_memory)
    result.reason += ", not kept: not enough memory for some plans";
  else
    lines.push_back(
        {cache_key(ctx.stream->device(), question, forward_alone), {full_name(*result.winner), result.milliseconds}});
  for (Candidate& candidate : result.candidates) candidate.plan = nullptr;  // a library's may hold memory of the device
  return {.plan = std::move(result.winner),
          .reason = std::move(result.reason),
          .milliseconds = result.milliseconds,
          .forward_alone = forward_alone,
          .holds = true,
          .measured = true,
          .candidates = std::move(result.candidates)};
}

std::vector<ConvEngine*> ConvTuner::candidate_engines(const std::string& how) {
  if (how != measured) return {&engine(without_clock(how))};
  std::vector<ConvEngine*> all;
  for (const auto& engine : engines_) all.push_back(engine.get());
  return all;
}

ConvTuner::Choice ConvTuner::known(const Device& device, const Question& question, bool forward_alone) {
  const ChoiceKey key = cache_key(device, question, forward_alone);
  Choice choice;
  if (const auto adopted = adopted_.find(question); adopted != adopted_.end())
    choice = again(adopted->second, question, {.reason = "as on rank 0", .measured = true});
  if (choice.plan == nullptr)
    if (const auto exact = cache_.find(key))
      choice =
          again(exact->choice, question, {.reason = "cached", .milliseconds = exact->milliseconds, .measured = true});
  if (choice.plan == nullptr && !policy_.own_batch) choice = of_another_batch(question, forward_alone);
  if (choice.plan == nullptr && !policy_.own_batch)
    if (const auto other = cache_.find_other_batch(key))
      choice = again(other->choice, question, {.reason = "cached, for another batch"});
  choice.forward_alone = forward_alone;
  return choice;
}

// A plan that was itself reused is no ground for another reuse: else batches of 1, 2, 4, ... would all have the
// first's.
ConvTuner::Choice ConvTuner::of_another_batch(const Question& question, bool forward_alone) const {
  std::map<int, const Choice*> measured;  // by batch
  for (const auto& [other, choice] : choices_) {
    const int batch = other.problem.batch;
    Question same = other;
    same.problem.batch = question.problem.batch;
    if (same == question && batch != question.problem.batch && choice.measured && choice.forward_alone == forward_alone)
      measured[batch] = &choice;
  }
  const auto nearest = find_reusable(measured, question.problem.batch);
  if (nearest == measured.end()) return {};
  return again(full_name(*nearest->second->plan), question, {.reason = join("as at batch ", nearest->first)});
}

// Everything that a measured choice depends on; docs/architecture.md lists it.
ChoiceKey ConvTuner::cache_key(const Device& device, const Question& question, bool forward_alone) {
  ConvProblem problem = question.problem;
  problem.batch = 1;
  const std::string follows = join(problem.bias ? " bias" : "", problem.relu ? " relu" : "");
  std::string text = join(to_string(question.pass), "\t", to_string(problem.precision), "\t", to_string(problem),
                          problem.input_gradient ? "" : " without the input's gradient",
                          problem.weight_gradient ? "" : " without the weights' gradient",
                          follows.empty() ? "" : ", then" + follows, "\t", describe(device), "\tworkspace_limit ",
                          policy_.workspace_limit, policy_.deterministic ? " deterministic" : "", "\t");
  for (const ConvEngine* engine : candidate_engines(question.how))
    text += join(engine->name(), "(", engine->library(), ") ");
  text += join("frequency_budget ", policy_.frequency_budget, " ", forward_alone ? "forward alone " : "", "\ttwiddle ",
               policy_.build);
  return {question.problem.batch, std::move(text)};
}

// The choice with that plan, made again; without one where that cannot be.
ConvTuner::Choice ConvTuner::again(const std::string& full_name, const Question& question, Choice choice) const try {
  const auto [name, plan] = parts_of(full_name);
  const ConvEngine* const engine = find_engine(name);
  if (engine != nullptr) choice.plan = engine->plan(question.problem, question.pass, plan);
  if (choice.plan != nullptr && !why_not(nullptr, question, choice).empty()) choice.plan = nullptr;
  return choice;
} catch (const Error&) {
  return {};
}

}  // namespace twiddle
