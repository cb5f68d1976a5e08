#include "apps/report/report_writer.h"
#include "layers/sequential.h"
#include "models/builder.h"
#include "models/checkpoints/checkpoint.h"

#include <ctime>

#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/memory_for.h"
#include "models/config/config.h"

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

// Returns the trainer's validation data; empty if it has no validation.
BestValidation::Data validation_data(const Trainer& trainer) {
  const Dataset* const val = trainer.val_data();
  if (val == nullptr) return {};
  return {{.target = trainer.target(),
           .images = val->size(),
           .classes = static_cast<std::int64_t>(val->classes().size()),
           .outputs = trainer.model().net->output_shape().at(0),
           .may_skip = trainer.config().data.skip_bad},
          trainer.state().validation_set};
}

}  // namespace

ReportWriter::ReportWriter(const Config& config, Trainer& trainer, const Metrics& metrics, Console& console,
                           const std::string& run_folder, const std::string& command, Clock::duration least_pause)
    : config_(config),
      trainer_(trainer),
      metrics_(metrics),
      console_(console),
      origin_{run_folder, command, local_time()},
      best_(run_folder, trainer.state().best_epoch, trainer.watched().name, validation_data(trainer)),
      least_pause_(least_pause) {
  if (!best_.discarded().empty())
    console_.line(join("warning: ", best_.discarded(), "; the report shows the next validation instead"));
}

void ReportWriter::on_epoch(const EpochReport& report) {
  try {
    if (report.has_validation)
      memory_for("the best epoch's validation",
                 [&] { best_.take(report, trainer_.last_validation(), trainer_.state().best_epoch); });
  } catch (const Error& error) {
    console_.line(join("warning: the best epoch's validation is not kept: ", error.what()));
  }
  if (!written_ || Clock::now() - *written_ >= least_pause_) write();
}

void ReportWriter::write() try {
  memory_for("report.html", [&] {
    const Report report = make_report(config_, trainer_, origin_, metrics_.history(), best_.get());
    write_file_atomically(origin_.folder + "/report.html", report_html(report));
  });
  written_ = Clock::now();
} catch (const Error& error) {
  written_ = Clock::now();
  console_.line(join("warning: no report: ", error.what()));
}

}  // namespace twiddle
