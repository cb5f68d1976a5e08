#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "apps/command_line/console.h"
#include "apps/report/best_validation.h"
#include "apps/report/metrics.h"
#include "apps/verbs/report.h"

namespace twiddle {

// Keeps a run's report.html up to date: at most every few seconds, for it grows with the run, and where the run ends.
// It is drawn from what the metrics keep in memory and from the best epoch's validation. What cannot be written is
// said, and ends nothing.
class ReportWriter : public TrainObserver {
 public:
  using Clock = std::chrono::steady_clock;

  // `command`: the line that started this process. Between two reports lies the pause at least.
  ReportWriter(const Config& config, Trainer& trainer, const Metrics& metrics, Console& console,
               const std::string& run_folder, const std::string& command,
               Clock::duration least_pause = std::chrono::seconds(5));
  bool wants_step(std::int64_t /*step*/) override { return false; }
  void on_epoch(const EpochReport& report) override;
  void write();  // now

 private:
  const Config& config_;
  Trainer& trainer_;
  const Metrics& metrics_;
  Console& console_;
  RunOrigin origin_;
  BestValidation best_;
  Clock::duration least_pause_;
  std::optional<Clock::time_point> written_;
};

}  // namespace twiddle
