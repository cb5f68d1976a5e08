#pragma once
#include <fstream>
#include <string>
#include <vector>

#include "models/trainer.h"

namespace twiddle {

// Writes metrics.jsonl (a line for some 50 steps of each epoch, and one for every epoch) and metrics.csv (a line an
// epoch) as the run goes. A resumed run first drops the lines of steps and epochs that it will go through again.
class Metrics : public TrainObserver {
 public:
  Metrics(const std::string& run_folder, std::int64_t steps_per_epoch, const RunState& start);
  bool wants_step(std::int64_t step) override { return step % every_ == 0; }
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;

 private:
  std::int64_t every_;
  std::ofstream lines_, table_;
};

// The history of a run, read back from metrics.jsonl: what curves are drawn from.
struct History {
  std::vector<StepReport> steps;
  std::vector<EpochReport> epochs;
};
History read_history(const std::string& run_folder);

}  // namespace twiddle
