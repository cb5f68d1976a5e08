#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "apps/best_validation.h"
#include "apps/console.h"
#include "apps/metrics.h"
#include "apps/report.h"

namespace twiddle {

// Keeps a run's report.html up to date: at most every few seconds, for it grows with the run, and where the run ends.
// It is drawn from what the metrics keep in memory and from the best epoch's validation. What cannot be written is
// said, and ends nothing.
class ReportWriter : public TrainObserver {
 public:
  // `command`: the line that started this process.
  ReportWriter(const Config& config, Trainer& trainer, const Metrics& metrics, Console& console,
               const std::string& run_folder, const std::string& command);
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
  std::optional<std::chrono::steady_clock::time_point> written_;
};

}  // namespace twiddle
