#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "layers/conv/choice_cache.h"
#include "layers/conv/contest.h"
#include "layers/conv/measuring.h"

namespace twiddle {

// How plans are chosen. `engine` is "rule" (the first plan of the first engine that can and pays), "measured" (the
// fastest of all, remembered), "measured:cudnn" (the fastest of that engine's), an engine's name (its first plan) or an
// engine's and a plan's, "cudnn:fft_tiling". Only "measured" goes by the clock. However it was chosen, a plan that
// misses the precision's promise is not taken.
struct ConvPolicy {
  std::string engine = "rule";
  Precision precision = Precision::fp32;
  std::size_t workspace_limit = std::size_t(4) << 30;
  std::size_t frequency_budget = std::size_t(4) << 30;  // for the spectra that all layers share
  bool deterministic = false;                           // no plan that gives other bits from run to run
  std::string cache_file = {};                // measured choices are kept here between runs; empty: in memory alone
  bool retune = false;                        // measure again what the file already knows
  bool own_batch = false;                     // measure what is known of another batch alone
  ChoiceCache::Warn warn = {};                // hears of a damaged file, and of engines whose library is of no use
  std::string build = {};                     // of the program, as ChoiceCache has it
  std::shared_ptr<Measuring> measuring = {};  // for who waits; null: nobody is told, nor may stop it
};

// Chooses the plan for a problem and pass, once, and remembers why.
class ConvTuner {
 public:
  using Plan = std::shared_ptr<const ConvPlan>;
  struct Choice {
    Plan plan;
    std::string reason = {};  // "rule", "named", "measured 1.42 ms, next gemm 3.10", "cached", "as at batch 128"
    double milliseconds = 0;  // where measured
    // Made where no other pass followed, among plans that help each other: in training another may be better.
    bool forward_alone = false;
    bool holds = false;                  // it has shown on this very problem that it keeps the precision
    std::vector<Entrant> entrants = {};  // of the contest that it won
  };

  // `stopwatch` null: the real one.
  ConvTuner(std::vector<std::unique_ptr<ConvEngine>> engines, ConvPolicy policy,
            std::shared_ptr<Stopwatch> stopwatch = nullptr);

  // `engine` overrides the policy for one layer; empty: the policy's.
  const Choice& choose(Context& ctx, const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Takes over, without measuring, what the cache knows. False: choose() would measure.
  bool recall(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  const Choice* find(const ConvProblem& problem, ConvPass pass,
                     const std::string& engine = {}) const;  // null: not chosen yet
  // The plan that was chosen, and before that the one that most likely will be: by rule or name, without measuring.
  Plan expected(const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Throws, with a suggestion, where no engine, rule or measured is called so; a tuner without engines knows no better
  // and is content with any.
  void check_name(const std::string& engine) const;
  std::vector<std::string> names() const;  // of the engines, in order
  ConvEngine& engine(const std::string& name);
  const ConvPolicy& policy() const { return policy_; }
  const ChoiceCache& cache() const { return cache_; }

 private:
  using Key = std::tuple<std::string, ConvProblem, ConvPass>;
  struct Refusal {
    std::string plan, why;  // of the first plan that may not be taken
  };
  Key key_of(const ConvProblem& problem, ConvPass pass, const std::string& engine) const;
  // What speaks against a choice's plan; empty: nothing does.
  std::string why_not(Context* ctx, const ConvProblem& problem, ConvPass pass, Choice& choice) const;
  // Of an engine; without a plan: there is none, and `refusal` tells why where there are plans.
  Choice first_that_holds(Context* ctx, const ConvProblem& problem, ConvPass pass, const ConvEngine& engine,
                          Refusal& refusal) const;
  Choice by_rule(Context* ctx, const ConvProblem& problem, ConvPass pass);
  Choice by_name(Context* ctx, const ConvProblem& problem, ConvPass pass, const std::string& name);
  static Plan plan_named(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass, const std::string& name);
  Error refused(const ConvProblem& problem, ConvPass pass, const std::string& name, const std::string& why);
  void warn_of(const ConvEngine& engine, const Error& error);
  Choice by_measurement(Context& ctx, const ConvProblem& problem, ConvPass pass, const std::string& how);
  std::optional<ContestResult> hold_contest(Context& ctx, const ConvProblem& problem,
                                            const std::vector<ConvPass>& passes, const std::string& how);
  Choice outcome(Context& ctx, const ConvProblem& problem, ConvPass pass, const std::string& how,
                 ContestResult::Pass result);
  // The engines that "measured" chooses among, or "measured:cudnn".
  std::vector<ConvEngine*> contenders(const std::string& how);
  ChoiceKey cache_key(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& how,
                      bool forward_alone);
  // What is known of the problem, or of one that differs in batch alone; an empty plan: nothing.
  Choice known(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& how,
               bool forward_alone);
  Choice of_another_batch(const ConvProblem& problem, ConvPass pass, const std::string& how, bool forward_alone) const;
  Plan same_plan(const std::string& full_name, const ConvProblem& problem, ConvPass pass) const;
  void forget_rehearsals(Context& ctx);

  std::vector<std::unique_ptr<ConvEngine>> engines_;
  ConvPolicy policy_;
  ChoiceCache cache_;
  std::shared_ptr<Stopwatch> stopwatch_;
  std::map<Key, Choice> choices_;
  std::set<std::string> warned_;
};

}  // namespace twiddle
