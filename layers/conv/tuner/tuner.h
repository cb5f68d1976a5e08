#pragma once
#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "layers/conv/conv_policy.h"
#include "layers/conv/tuner/choice_cache.h"
#include "layers/conv/tuner/contest.h"

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
    // Made where no other pass followed, among plans that help each other: in training another may be better.
    bool forward_alone = false;
    bool holds = false;                  // it has shown on this very problem that it keeps the precision
    bool measured = false;               // on this very problem: a batch near its own may reuse it
    std::vector<Entrant> entrants = {};  // of the contest that it won
  };

  ConvTuner(std::vector<std::unique_ptr<ConvEngine>> engines, ConvPolicy policy);

  // `engine` overrides the policy for one layer; empty: the policy's.
  const Choice& choose(Context& ctx, const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Takes over, without measuring, what the cache knows. False: choose() would measure.
  bool recall(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Where choose() would measure, it takes that plan, which another process has found to be the fastest: unless it
  // cannot be made here, or misses the precision.
  void adopt(const ConvProblem& problem, ConvPass pass, const std::string& engine, const std::string& full_name);
  bool measures(const std::string& engine) const;  // goes by the clock where a layer says `engine`, or nothing
  const Choice* find(const ConvProblem& problem, ConvPass pass,
                     const std::string& engine = {}) const;  // null: not chosen yet
  // The plan that was chosen, and before that the one that most likely will be: by rule or name, without measuring. It
  // is made anew each time, which is cheap (0.1 to 0.5 ms on a CPU), so that a memory plan may ask for any batch size.
  Plan expected(const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Throws, with a suggestion, where no engine, rule or measured is called so; a tuner without engines knows no better
  // and is content with any.
  void check_name(const std::string& engine) const;
  std::vector<std::string> names() const;  // of the engines, in order
  ConvEngine& engine(const std::string& name);
  // Frees what the engines keep of tensors that are gone, such as spectra of an output's gradient after its last use.
  void forget_gone();
  void forget();  // frees all that the engines keep from pass to pass
  const ConvPolicy& policy() const { return policy_; }
  const ChoiceCache& cache() const { return cache_; }

 private:
  // What is asked: a plan for a pass of a problem, chosen as a policy's or a layer's `engine` says.
  struct Question {
    std::string how;
    ConvProblem problem;
    ConvPass pass;
    auto operator<=>(const Question&) const = default;
  };
  struct Refusal {
    std::string plan, why;  // of the first plan that may not be taken
  };
  ConvEngine* find_engine(const std::string& name) const;  // null: there is none
  Question question(const ConvProblem& problem, ConvPass pass, const std::string& engine) const;

  // Without the clock. With no context nothing is run, and a plan's word for its precision is taken.
  Choice by_rule(Context* ctx, const Question& question);
  Choice by_name(Context* ctx, const Question& question);
  Choice unmeasured(Context* ctx, Question question);  // what stands for it where nothing can be measured
  // An engine's; without a plan: there is none, and `refusal` tells why where there are plans.
  Choice first_that_holds(Context* ctx, const Question& question, const ConvEngine& engine, Refusal& refusal) const;
  // What speaks against a choice's plan; empty: nothing does.
  std::string why_not(Context* ctx, const Question& question, Choice& choice) const;
  static Plan plan_named(const ConvEngine& engine, const Question& question, const std::string& name);
  Error refused(const Question& question, const std::string& why);
  void warn_of(const ConvEngine& engine, const Error& error);

  // By the clock, or from what it showed before.
  Choice by_measurement(Context& ctx, const Question& question);
  std::optional<ContestResult> hold_contest(Context& ctx, const Question& question,
                                            const std::vector<ConvPass>& passes);
  // What a contest of a pass chose; adds to `lines` what the cache is to keep.
  Choice outcome(Context& ctx, const Question& question, ContestResult::Pass result,
                 std::vector<ChoiceCache::Line>& lines);
  std::vector<ConvEngine*> contenders(const std::string& how);  // among whom "measured" or "measured:cudnn" chooses
  // What is known of the problem, or of one whose batch is near enough; an empty plan: nothing.
  Choice known(const Device& device, const Question& question, bool forward_alone);
  Choice of_another_batch(const Question& question, bool forward_alone) const;
  ChoiceKey cache_key(const Device& device, const Question& question, bool forward_alone);
  Choice again(const std::string& full_name, const Question& question, Choice choice) const;
  void forget_rehearsals(Context& ctx);

  std::vector<std::unique_ptr<ConvEngine>> engines_;
  ConvPolicy policy_;
  ChoiceCache cache_;
  std::map<Question, Choice> choices_;
  std::map<Question, std::string> adopted_;  // full names of plans
  std::set<std::string> warned_;
};

}  // namespace twiddle
