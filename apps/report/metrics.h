#pragma once
#include <fstream>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/training/trainer.h"

namespace twiddle {

// The history of a run: what curves are drawn from.
struct History {
  std::vector<StepReport> steps;  // evenly thinned in a long run: a chart has fewer points
  std::vector<EpochReport> epochs;

  void add(const StepReport& step);

 private:
  std::size_t seen_ = 0, stride_ = 1;  // steps so far; of which every stride-th is kept
};
History read_history(const std::string& run_folder);  // from metrics.jsonl

nlohmann::json to_json(const EpochReport& report);  // val_NAME for each metric that was measured

// Writes metrics.jsonl (a line for some 50 steps of each epoch, and one for every epoch) and metrics.csv (a line an
// epoch) as the run goes, each line with the time of day. A resumed run first drops the lines of steps and epochs that
// it will go through again. From then on both files are only appended to, and what they hold is kept here as well.
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
