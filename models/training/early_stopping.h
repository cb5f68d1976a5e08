#pragma once
#include <cstdint>
#include <string>

#include "models/checkpoints/checkpoint.h"
#include "models/config/config.h"
#include "models/evaluation/metric.h"

namespace twiddle {

// Tracks the best epoch by the metric `train.watch`, and stops training after `patience` epochs without improvement.
// Its state is in RunState, so that a resumed run has it as well.
class EarlyStopping {
 public:
  // `metrics` are those that the validation measures.
  EarlyStopping(const std::vector<Metric>& metrics, const Config::Train& train);

  const Metric& metric() const { return metric_; }
  // Discards scores of another metric or of another validation set. Returns a warning in the latter case, else an empty
  // string. `validation_set` is a fingerprint(); empty: there is none.
  std::string resume(RunState& state, const std::string& validation_set = {}) const;
  // Adds the scores of a finished epoch. Returns whether it is the best so far; a non-finite score is never the best.
  bool take(std::int64_t epoch, const Scores& scores, RunState& state) const;
  // Returns whether the last `patience` epochs did not improve the score by more than `min_delta`.
  bool stops(const RunState& state) const;

 private:
  Metric metric_;
  std::int64_t patience_;  // 0: it never stops
  double min_delta_;
};

}  // namespace twiddle
