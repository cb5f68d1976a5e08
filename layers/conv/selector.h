#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/convolution.h"
#include "layers/conv/choice_cache.h"
#include "layers/conv/measuring.h"

namespace twiddle {

// How engines are chosen. `engine` is "rule" (the first in the list that supports the problem and pays), "measured"
// (the fastest of those that keep the precision class, remembered), or an engine's name, which fails loudly where it
// cannot. Only where it is "measured" do engines choose among ways of their own by the clock: cuDNN's alone does
// always.
struct ConvPolicy {
  std::string engine = "rule";
  Precision precision = Precision::fp32;
  std::size_t workspace_limit = std::size_t(4) << 30;
  std::size_t frequency_budget = std::size_t(4) << 30;  // for the spectra that all layers share
  std::string cache_file = {};                // measured choices are kept here between runs; empty: in memory alone
  bool retune = false;                        // measure again what the file already knows
  ChoiceCache::Warn warn = {};                // hears of a damaged file, and of engines whose library is of no use
  std::string build = {};                     // of the program, as ChoiceCache has it
  std::shared_ptr<Measuring> measuring = {};  // for who waits; null: nobody is told, nor may stop it
};

std::shared_ptr<ChoiceCache> open_cache(const ConvPolicy& policy);

// Picks the engine for a problem and pass, once, and remembers why.
class ConvSelector {
 public:
  struct Choice {
    ConvEngine* engine = nullptr;
    std::string reason;       // "rule", "named", "measured 1.42 ms, next gemm 3.10", "cached"
    double milliseconds = 0;  // where measured
    // Made where no other pass followed, of engines whose passes help each other: in training another may be better.
    bool forward_alone = false;
    bool recalled = false;  // from the cache, by who could not tune the engine: the first run's choose() does
  };

  // `cache` is open_cache(policy), shared with engines that keep choices of their own; null: the selector opens it.
  ConvSelector(std::vector<std::unique_ptr<ConvEngine>> engines, ConvPolicy policy,
               std::shared_ptr<ChoiceCache> cache = nullptr);

  // `engine` overrides the policy for one layer; empty: the policy's.
  ConvEngine& choose(Context& ctx, const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  // Takes over, without measuring, what the cache knows. False: choose() would measure.
  bool recall(const Device& device, const ConvProblem& problem, ConvPass pass, const std::string& engine = {});
  const Choice* find(const ConvProblem& problem, ConvPass pass,
                     const std::string& engine = {}) const;  // null: not chosen yet
  std::size_t workspace_bytes(const ConvProblem& problem, ConvPass pass,
                              const std::string& engine = {});  // by rule or name; no timing
  std::size_t kept_bytes(const ConvProblem& problem, ConvPass pass, const std::string& engine = {});  // likewise
  // Throws, with a suggestion, where no engine, rule or measured is called so; a selector without engines knows no
  // better and is content with any.
  void check_name(const std::string& engine) const;
  std::vector<std::string> names() const;  // of the engines, in order
  ConvEngine& engine(const std::string& name);
  const ConvPolicy& policy() const { return policy_; }
  const ChoiceCache& cache() const { return *cache_; }

 private:
  using Key = std::tuple<std::string, ConvProblem, ConvPass>;
  Key key_of(const ConvProblem& problem, ConvPass pass, const std::string& engine) const;
  const ConvEngine& expected(const ConvProblem& problem, ConvPass pass, const std::string& engine);
  // Where the engine fails while it is asked, `failures` gets to know why.
  bool usable(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass, std::string& failures);
  bool usable(const ConvEngine& engine, const ConvProblem& problem, ConvPass pass);
  Choice by_rule(const ConvProblem& problem, ConvPass pass);
  Choice by_name(const ConvProblem& problem, ConvPass pass, const std::string& engine);
  std::string cache_key(const Device& device, const ConvProblem& problem, ConvPass pass, bool forward_alone) const;
  std::optional<Choice> cached(const Device& device, const ConvProblem& problem, ConvPass pass,
                               bool forward_alone = false);
  Choice by_measurement(Context& ctx, const ConvProblem& problem, ConvPass pass);
  struct Contest {
    std::vector<std::pair<double, ConvEngine*>> times;  // ms of those that keep the precision, the fastest first
    std::string dropped;                                // the others, and why
    bool doubtful = false;                              // another turn had another winner: nothing to remember
  };
  Contest hold_contest(Context& ctx, const ConvProblem& problem, ConvPass pass);
  void enter(Context& ctx, ConvEngine& engine, const ConvProblem& problem, ConvPass pass, Contest& contest);
  void repeat(Context& ctx, const ConvProblem& problem, ConvPass pass, Contest& contest);
  void between_two_measurements() const;
  Choice winner(const ConvProblem& problem, ConvPass pass, const Contest& contest);
  void take_one_for_all(Context& ctx, const ConvProblem& problem, const std::array<Contest, 3>& contests, double apart,
                        std::array<Choice, 3>& choices) const;
  void keep(Context& ctx, const ConvProblem& problem, ConvPass pass, const Contest& contest, const Choice& choice);

  std::vector<std::unique_ptr<ConvEngine>> engines_;
  ConvPolicy policy_;
  std::shared_ptr<ChoiceCache> cache_;
  std::map<Key, Choice> choices_;
  std::set<std::string> warned_;
};

}  // namespace twiddle
