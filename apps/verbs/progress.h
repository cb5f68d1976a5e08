#pragma once
#include <chrono>
#include <string>

#include "apps/command_line/console.h"
#include "models/training/trainer.h"

namespace twiddle {

// Shows the progress of a run: on a terminal a bar redrawn in place, elsewhere periodic plain lines. Prints one table
// row per epoch.
class Progress : public TrainObserver {
 public:
  // `validated`: empty if there is no validation
  Progress(Console& console, std::int64_t epochs, std::vector<Metric> validated);
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
  std::int64_t skipped_shown_ = 0, skipped_steps_shown_ = 0;
  std::chrono::steady_clock::time_point last_shown_;
};

std::string bar_line(const StepReport& report, std::int64_t epochs, int width);
std::string plain_line(const StepReport& report);  // aligned to the table's epoch column
// One column per validation metric.
std::string table_header(const std::vector<Metric>& validated);
std::string table_row(const EpochReport& report, const std::vector<Metric>& validated);
std::string skipped_line(std::int64_t count);  // "3 images could not be read and were left out"

}  // namespace twiddle
