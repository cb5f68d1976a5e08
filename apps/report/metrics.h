#pragma once
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/training/trainer.h"

namespace twiddle {

// The history of a run, from which curves are drawn.
struct History {
  std::vector<StepReport> steps;  // evenly thinned in a long run, because a chart has fewer points
  std::vector<EpochReport> epochs;

  void add(const StepReport& step);

 private:
  std::size_t seen_ = 0, stride_ = 1;  // steps so far; every stride-th is kept
};
History read_history(const std::string& run_folder);  // from metrics.jsonl

nlohmann::json to_json(const EpochReport& report);  // val_NAME for each metric that was measured

// Writes metrics.jsonl and metrics.csv during the run. metrics.jsonl has about 50 step lines per epoch and one epoch
// line; metrics.csv has one line per epoch. Each line has the time of day. A resumed run first removes the lines of
// steps and epochs that it repeats. From then on, both files are only appended to. Their content is also kept in
// memory.
class Metrics : public TrainObserver {
 public:
  Metrics(const std::string& run_folder, const std::vector<Metric>& metrics, std::int64_t steps_per_epoch,
          const RunState& start);
  bool wants_step(std::int64_t step) override { return step % every_ == 0; }
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;
  const History& history() const { return history_; }

 private:
  std::vector<Metric> metrics_;
  std::int64_t every_;
  History history_;
  std::ofstream lines_, table_;
};

}  // namespace twiddle
