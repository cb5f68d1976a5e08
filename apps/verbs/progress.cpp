#include "apps/verbs/progress.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/command_line/text_table.h"
#include "framework/text.h"

namespace twiddle {
namespace {

using namespace std::chrono_literals;

// Prints only significant digits of a rate: 3,910 but 47.2.
std::string format_rate(double rate) {
  return rate < 100 ? fmt::format("{:.1f}", rate) : format_count(static_cast<std::int64_t>(std::llround(rate)));
}

// With several ranks, returns the longest wait, because the other ranks wait for that rank.
std::string text_of(const DataWait& wait) {
  const std::string share = fmt::format("{:.0f}%", 100 * wait.largest());
  return wait.is_of_several() ? fmt::format("{} (rank {})", share, wait.rank_of_largest()) : share;
}

std::string facts(const StepReport& report) {
  return fmt::format("loss {:.4f}  lr {:.3g}  {} images/s  eta {}  data wait {}", report.loss, report.rate,
                     format_rate(report.images_per_second), format_duration(report.eta_seconds), text_of(report.wait)) +
         (report.skipped > 0 ? fmt::format("  skipped {}", format_count(report.skipped)) : "");
}

}  // namespace

Progress::Progress(Console& console, std::int64_t epochs, std::vector<Metric> validated)
    : console_(console),
      epochs_(epochs),
      validated_(std::move(validated)),
      last_shown_(std::chrono::steady_clock::now()) {}

bool Progress::wants_step(std::int64_t /*step*/) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_shown_ < (console_.terminal() ? 100ms : 10s)) return false;
  last_shown_ = now;
  return true;
}

void Progress::on_step(const StepReport& report) {
  if (console_.terminal()) return console_.redraw(bar_line(report, epochs_, console_.width()));
  show_header();
  console_.line(plain_line(report));
}

void Progress::show_header() {
  if (!std::exchange(header_shown_, true)) console_.line(table_header(validated_));
}

void Progress::on_epoch(const EpochReport& report) {
  show_header();
  console_.line(table_row(report, validated_));
  if (report.skipped > skipped_shown_) {
    console_.line("  " + skipped_line(report.skipped));
    skipped_shown_ = report.skipped;
  }
  if (report.skipped_steps > skipped_steps_shown_) {
    console_.line(fmt::format("  {} skipped so far: gradients beyond fp16; the loss scale is {}",
                              format_count(report.skipped_steps, "step"), format_number(report.loss_scale)));
    skipped_steps_shown_ = report.skipped_steps;
  }
  if (report.wait.largest() > 0.2 && !data_hint_given_ && report.seconds > 1) {
    const std::string who =
        report.wait.is_of_several() ? fmt::format("on rank {} ", report.wait.rank_of_largest()) : "";
    console_.line(
        fmt::format("  {:.0f}% of this epoch was spent {}waiting for data: try more --workers, or smaller images",
                    100 * report.wait.largest(), who));
    data_hint_given_ = true;
  }
}

void Progress::on_not_captured(const std::string& why) {
  console_.line("no CUDA graph, steps are launched kernel by kernel: " + why);
}

std::string bar_line(const StepReport& report, std::int64_t epochs, int width) {
  const std::string before = fmt::format("epoch {}/{} [", report.epoch, epochs);
  const std::string after = fmt::format("] {}/{}  {}", report.step_of_epoch, report.steps_of_epoch, facts(report));
  // On a narrow terminal, shortens the bar first, then the end of the line.
  const int cells = std::clamp(width - 1 - static_cast<int>(before.size() + after.size()), 6, 20);
  const double share = report.steps_of_epoch > 0
                           ? static_cast<double>(report.step_of_epoch) / static_cast<double>(report.steps_of_epoch)
                           : 1;
  const int done = std::clamp(static_cast<int>(share * cells), 0, cells);
  std::string bar(static_cast<std::size_t>(cells), '.');
  std::fill_n(bar.begin(), done, '=');
  if (done < cells) bar[static_cast<std::size_t>(done)] = '>';
  return (before + bar + after).substr(0, static_cast<std::size_t>(std::max(1, width - 1)));
}

std::string plain_line(const StepReport& report) {
  return fmt::format("{:>5}  step {}/{}  {}", report.epoch, report.step_of_epoch, report.steps_of_epoch, facts(report));
}

std::string table_header(const std::vector<Metric>& validated) {
  std::string header = "epoch  train-loss";
  for (const Metric& metric : validated) header += fmt::format("  {:>8}", std::string("val-") + metric.name);
  return header + "  images/s     time";
}

std::string table_row(const EpochReport& report, const std::vector<Metric>& validated) {
  std::string row = fmt::format("{:>5}  {:>10.4f}", report.epoch, report.train_loss);
  for (const Metric& metric : validated) row += fmt::format("  {:>8}", metric.text(metric.of(report.val)));
  row += fmt::format("  {:>8}  {:>7}", format_rate(report.images_per_second), format_duration(report.seconds));
  return report.best ? row + "  *best, saved" : row;
}

std::string skipped_line(std::int64_t count) {
  return fmt::format("{} {} could not be read and {} left out", format_count(count), count == 1 ? "image" : "images",
                     count == 1 ? "was" : "were");
}

}  // namespace twiddle
