#pragma once
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "layers/conv/conv_policy.h"
#include "layers/conv/tuner/autotuner.h"
#include "layers/conv/tuner/choice_cache.h"

namespace twiddle {

class Error;

// Chooses the plan for a problem and pass, once, and remembers why.
class ConvTuner {
 public:
  using Plan = std::shared_ptr<const ConvPlan>;
  struct Choice {
    Plan plan = {};
    std::string reason = {};  // "rule", "named", "measured 1.42 ms, next gemm 3.10", "cached", "as at batch 128"
    double milliseconds = 0;  // where measured
    // Chosen without the backward passes (evaluation). In training another plan may be faster, as passes share spectra.
    bool forward_alone = false;
    bool holds = false;                      // its error was checked on this problem
    bool measured = false;                   // on this problem: a problem of similar batch size may reuse it
    std::vector<Candidate> candidates = {};  // all plans that were compared
  };

  // If the policy's precision is bf16 or fp16, cast_around gives the engines plans for problems of 16 bits.
  ConvTuner(std::vector<std::unique_ptr<ConvEngine>> engines, ConvPolicy policy);

  // `engine` overrides the policy for one layer; empty: the policy's.
  const Choice& choose(Context& ctx, const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Takes over, without measuring, what the cache knows. False: choose() would measure.
  bool recall(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Makes choose() use this plan, the fastest on another process, instead of measuring. If the plan cannot be made
  // here or exceeds the error limit, choose() ignores it.
  void adopt(const ConvProblem& problem, ConvPass pass, const std::string& engine, const std::string& full_name);
  bool measures(const std::string& engine) const;  // whether choose() measures; empty: the policy's engine
  const Choice* find(const ConvProblem& problem, ConvPass pass,
                     const std::string& engine = {}) const;  // null: not chosen yet
  // Returns the chosen plan. Before the choice, returns the plan that the heuristic or the name gives, unmeasured. Each
  // call makes that plan again (0.1 to 0.5 ms on a CPU), so a memory plan can use any batch size.
  Plan expected(const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Throws, with a suggestion, where no engine, rule or measured is called so; a tuner without engines knows no better
  // and is content with any.
  void check_name(const std::string& engine) const;
  std::vector<std::string> names() const;  // of the engines, in order
  ConvEngine& engine(const std::string& name);
  // Frees what the engines keep for tensors that no longer exist, such as spectra of an output's gradient after its
  // last use.
  void forget_gone();
  void forget();  // frees all that the engines keep from pass to pass
  const ConvPolicy& policy() const { return policy_; }
  const ChoiceCache& cache() const { return cache_; }

 private:
  // A request: a plan for a pass of a problem. `how` is the layer's or the policy's `engine`.
  struct Question {
    std::string how;
    ConvProblem problem;
    ConvPass pass;
    auto operator<=>(const Question&) const = default;
  };
  struct Refusal {
    std::string plan, why;  // of the first rejected plan
  };
  ConvEngine* find_engine(const std::string& name) const;  // null: there is none
  Question question(const ConvProblem& problem, ConvPass pass, const std::string& engine) const;

  // Without measurement. If ctx is null, nothing runs and the plan's error is not checked.
  Choice by_rule(Context* ctx, const Question& question);
  Choice by_name(Context* ctx, const Question& question);
  Choice unmeasured(Context* ctx, Question question);  // what stands for it where nothing can be measured
  // Returns the engine's first plan that passes the checks. Without one, the choice has no plan, and `refusal` has the
  // reason if the engine has plans.
  Choice first_that_holds(Context* ctx, const Question& question, const ConvEngine& engine, Refusal& refusal) const;
  // Returns why the choice's plan is rejected; empty: it is not.
  std::string why_not(Context* ctx, const Question& question, Choice& choice) const;
  static Plan plan_named(const ConvEngine& engine, const Question& question, const std::string& name);
  Error refused(const Question& question, const std::string& why);
  void warn_of(const ConvEngine& engine, const Error& error);

  // By measurement, or from an earlier one.
  Choice by_measurement(Context& ctx, const Question& question);
  std::optional<AutotunerResult> autotune(Context& ctx, const Question& question, const std::vector<ConvPass>& passes);
  // Returns the choice for one measured pass; adds the cache's new entries to `lines`.
  Choice outcome(Context& ctx, const Question& question, AutotunerResult::Pass result,
                 std::vector<ChoiceCache::Line>& lines);
  std::vector<ConvEngine*> candidate_engines(
      const std::string& how);  // among whom "measured" or "measured:cudnn" chooses
  // What is known of the problem, or of one whose batch is near enough; an empty plan: nothing.
  Choice known(const Device& device, const Question& question, bool forward_alone);
  Choice of_another_batch(const Question& question, bool forward_alone) const;
  ChoiceKey cache_key(const Device& device, const Question& question, bool forward_alone);
  Choice again(const std::string& full_name, const Question& question, Choice choice) const;
  void forget_trial_runs(Context& ctx);

  std::vector<std::unique_ptr<ConvEngine>> engines_;
  ConvPolicy policy_;
  ChoiceCache cache_;
  std::map<Question, Choice> choices_;
  std::map<Question, std::string> adopted_;  // full names of plans
  std::set<std::string> warned_;
};

}  // namespace twiddle
