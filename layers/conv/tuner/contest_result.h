#pragma once
#include <array>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// The result of one plan.
struct Entrant {
  std::shared_ptr<const ConvPlan> plan;  // null where the contest is long over
  ConvPlan::Facts facts;
  double milliseconds = std::numeric_limits<double>::infinity();      // alone, if it was timed
  double error = std::numeric_limits<double>::quiet_NaN();            // if it was checked
  std::string fate = "not tried: other grids were faster at a look";  // why it is out; empty: it ran to the end
};

struct ContestResult {
  struct Pass {
    std::shared_ptr<const ConvPlan> winner;  // null: no plan keeps the precision
    double milliseconds = 0;                 // of the winner, in its step where it won by that
    std::string reason;                      // "measured 1.42 ms, next gemm 3.10"
    std::string failure;                     // of engines that failed when they were asked; empty: none did
    std::vector<Entrant> entrants;           // the fastest first
    bool doubtful = false;                   // its repeats disagree: nothing to remember
    bool short_of_memory = false;            // some plan could not be timed for that: nothing to remember, either
  };
  std::array<Pass, 3> passes;  // empty where the pass took no part
  bool doubtful() const { return passes[0].doubtful || passes[1].doubtful || passes[2].doubtful; }
};

}  // namespace twiddle
