#include "apps/report_writer.h"

#include <ctime>

#include "framework/atomic_file.h"
#include "framework/error.h"

namespace twiddle {
namespace {

// As 2026-11-22 23:08 CET.
std::string local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof text, "%F %R %Z", &parts)};
}

}  // namespace

ReportWriter::ReportWriter(const Config& config, Trainer& trainer, const Metrics& metrics, Console& console,
                           const std::string& run_folder, const std::string& command, Clock::duration least_pause)
    : config_(config),
      trainer_(trainer),
      metrics_(metrics),
      console_(console),
      origin_{run_folder, command, local_time()},
      best_(run_folder, trainer.state().best_epoch, trainer.watched().name),
      least_pause_(least_pause) {}

void ReportWriter::on_epoch(const EpochReport& report) {
  try {
    if (report.has_validation) best_.take(report, *trainer_.last_validation(), trainer_.state().best_epoch);
  } catch (const Error& error) {
    console_.line(join("warning: the best epoch's validation is not kept: ", error.what()));
  }
  if (!written_ || Clock::now() - *written_ >= least_pause_) write();
}

void ReportWriter::write() try {
  const Report report = make_report(config_, trainer_, origin_, metrics_.history(), best_.get());
  write_file_atomically(origin_.folder + "/report.html", report_html(report));
  written_ = Clock::now();
} catch (const Error& error) {
  written_ = Clock::now();
  console_.line(join("warning: no report: ", error.what()));
}

}  // namespace twiddle
