#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "apps/command_line/console.h"
#include "apps/report/best_validation.h"
#include "apps/report/metrics.h"
#include "apps/verbs/report.h"

namespace twiddle {

// Keeps a run's report.html up to date. Writes it at most every few seconds, because it grows with the run, and at the
// end of the run. It is drawn from the metrics in memory and the best epoch's validation. A write error is reported and
// does not stop the run.
class ReportWriter : public TrainObserver {
 public:
  using Clock = std::chrono::steady_clock;

  // `command`: the command line of this process. `least_pause`: minimum time between two reports.
  ReportWriter(const Config& config, Trainer& trainer, const Metrics& metrics, Console& console,
               const std::string& run_folder, const std::string& command,
               Clock::duration least_pause = std::chrono::seconds(5));
  bool wants_step(std::int64_t /*step*/) override { return false; }
  void on_epoch(const EpochReport& report) override;
  void write();

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
