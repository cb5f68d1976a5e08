#include "apps/report_writer.h"

#include "apps/report.h"
#include "framework/error.h"
#include "models/atomic_file.h"

namespace twiddle {
namespace {

constexpr auto least_pause = std::chrono::seconds(5);

}  // namespace

ReportWriter::ReportWriter(const Config& config, Trainer& trainer, const Metrics& metrics, Console& console,
                           const std::string& run_folder)
    : config_(config), trainer_(trainer), metrics_(metrics), console_(console), path_(run_folder + "/report.html") {}

void ReportWriter::on_epoch(const EpochReport& /*report*/) {
  if (!written_ || std::chrono::steady_clock::now() - *written_ >= least_pause) write();
}

void ReportWriter::write() try {
  write_file_atomically(path_,
                        report_html(make_report(config_, trainer_, metrics_.history(), trainer_.last_validation())));
  written_ = std::chrono::steady_clock::now();
} catch (const Error& error) {
  written_ = std::chrono::steady_clock::now();
  console_.line(join("warning: no report: ", error.what()));
}

}  // namespace twiddle
