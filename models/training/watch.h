#pragma once
#include <cstdint>
#include <string>

#include "models/checkpoints/checkpoint.h"
#include "models/config/config.h"
#include "models/evaluation/metric.h"

namespace twiddle {

// Which epoch is best so far by the metric that the config watches, and when training stops as none gets better any
// more. What it knows is kept in the state of the run, so that a resumed run has it as well.
class Watch {
 public:
  // `metrics` are those that the validation measures.
  Watch(const std::vector<Metric>& metrics, const Config::Train& train);

  const Metric& metric() const { return metric_; }
  // Forgets scores of another metric, by which the run was begun, and of other data. Returns a warning of the latter;
  // may be empty. The set is one that fingerprint() names; empty: there is none.
  std::string take_up(RunState& state, const std::string& validation_set = {}) const;
  // The scores of a finished epoch. True: it is the best so far. One that is not finite is never the best.
  bool take(std::int64_t epoch, const Scores& scores, RunState& state) const;
  // `patience` epochs have gone by since the last one that bettered the score by more than `min_delta`.
  bool stops(const RunState& state) const;

 private:
  Metric metric_;
  std::int64_t patience_;  // 0: it never stops
  double min_delta_;
};

}  // namespace twiddle
