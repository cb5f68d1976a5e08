#pragma once
#include <array>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "layers/conv/tuner/trial.h"

namespace twiddle {

class Error;

// The result of one plan.
struct Candidate {
  std::shared_ptr<const ConvPlan> plan;  // null once the result is stored
  ConvPlan::Facts facts;
  double milliseconds = std::numeric_limits<double>::infinity();  // alone, if it was timed
  double error = std::numeric_limits<double>::quiet_NaN();        // if it was checked
  std::string reason =
      "not benchmarked: other grids were faster in a short run";  // why it is out; empty: it ran to the end
};

struct AutotunerResult {
  struct Pass {
    std::shared_ptr<const ConvPlan> winner;  // null: no plan is within the error limit
    double milliseconds = 0;                 // of the winner, in its step where it won by that
    std::string reason;                      // "measured 1.42 ms, next gemm 3.10"
    std::string failure;                     // of engines that failed to make plans; empty: none did
    std::vector<Candidate> candidates;       // the fastest first
    bool doubtful = false;                   // its repeats disagree: nothing to remember
    bool short_of_memory = false;            // some plan could not be timed for that: nothing to remember, either
  };
  std::array<Pass, 3> passes;  // empty where the pass took no part
  bool doubtful() const { return passes[0].doubtful || passes[1].doubtful || passes[2].doubtful; }
};

// Finds the fastest plans of some engines for a problem's passes, with the problem's epilogue. All plans are timed
// briefly, the best ones longer, and each is checked against the error limit. Plans that share spectra are timed one
// after another, as in a training step. Together they may win all passes even if none wins its pass alone.
class Autotuner {
 public:
  struct Rules {
    std::size_t workspace_limit = 0;
    bool deterministic = false;                 // plans that are not are left out
    bool exact = false;                         // plans that sum in double take part, too
    std::function<void()> between_two = [] {};  // is called between two measurements, and may throw
    std::function<void(const ConvEngine&, const Error&)> failed = [](const auto&, const auto&) {};  // to make plans
  };
  Autotuner(Context& ctx, const ConvProblem& problem, std::vector<ConvPass> passes, std::vector<ConvEngine*> engines,
            Rules rules);
  // Runs the benchmark, and again if its repeats disagree.
  AutotunerResult run();

 private:
  struct Timed {
    std::shared_ptr<const ConvPlan> plan;
    double milliseconds = std::numeric_limits<double>::infinity();  // in its step
  };
  // Plans that share: for each pass some, the fastest first.
  struct Family {
    std::string shares, engine;
    std::array<std::vector<Timed>, 3> plans = {};
    double milliseconds = std::numeric_limits<double>::infinity();  // of the step of its fastest
    StepPlans in_round(std::size_t round) const;                    // of each pass's plans that one, or the last
  };
  AutotunerResult gather() const;
  AutotunerResult run_once(AutotunerResult result);
  std::vector<Family> families(const AutotunerResult& gathered) const;
  std::vector<Family> fastest_families(const AutotunerResult& gathered);
  StepTimes look(StepTrial& trial, const StepPlans& plans, double budget_ms);
  void look(StepTrial& trial, Family& family, double budget_ms);
  void choose_products(StepTrial& trial, Family& family);
  void time_alone(ConvPass pass, std::vector<Family>& families, AutotunerResult::Pass& here);
  void take_first_look(PassTrial& trial, Candidate& candidate, double& fastest);
  void repeat_the_best(PassTrial& trial, AutotunerResult::Pass& here) const;
  void weigh_epilogue_backward(AutotunerResult& result) const;
  void time_together(const std::vector<Family>& families, AutotunerResult& result);
  void note(const Error& failure);

  Context& ctx_;
  ConvProblem problem_;
  std::vector<ConvPass> passes_;
  std::vector<ConvEngine*> engines_;
  Rules rules_;
  bool short_of_memory_ = false;
};

}  // namespace twiddle
