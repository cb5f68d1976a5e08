#pragma once
#include <chrono>
#include <string>

#include "apps/command_line/console.h"
#include "models/training/trainer.h"

namespace twiddle {

// Shows a run as it goes: on a terminal a bar redrawn in place, elsewhere a plain line now and then; a table row an
// epoch.
class Progress : public TrainObserver {
 public:
  Progress(Console& console, std::int64_t epochs, std::vector<Metric> validated);  // empty: no validation
  bool wants_step(std::int64_t step) override;
  void on_step(const StepReport& report) override;
  void on_epoch(const EpochReport& report) override;
  void on_not_captured(const std::string& why) override;

 private:
  void show_header();

  Console& console_;
  std::int64_t epochs_;
  std::vector<Metric> validated_;
  bool header_shown_ = false, data_hint_given_ = false;
  std::int64_t skipped_shown_ = 0;
  std::chrono::steady_clock::time_point last_shown_;
};

std::string bar_line(const StepReport& report, std::int64_t epochs, int width);
std::string plain_line(const StepReport& report);  // the epoch in the table's column
// With a column for each metric of the validation.
std::string table_header(const std::vector<Metric>& validated);
std::string table_row(const EpochReport& report, const std::vector<Metric>& validated);
std::string skipped_line(std::int64_t count);  // "3 images could not be read and were left out"

}  // namespace twiddle
