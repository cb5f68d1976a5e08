#include "apps/report/metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "models/checkpoints/checkpoint.h"
#include "models/config/json_text.h"

namespace twiddle {
namespace {

using MetricsLine = nlohmann::json;

std::string csv_header(const std::vector<Metric>& metrics) {
  std::string header = "epoch,step,train_loss,train_top1,";
  for (const Metric& metric : metrics) header += fmt::format("val_{},", metric.name);
  return header + "learning_rate,images_per_second,data_wait,seconds,skipped,time\n";
}

// Returns the current time, as 2026-11-22T22:08:36Z.
std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[sizeof "2026-11-22T22:08:36Z"];
  return {text, std::strftime(text, sizeof text, "%FT%TZ", &parts)};
}

std::string path_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

// Empty if not measured.
std::string csv_number(double value) {
  return std::isnan(value) ? "" : fmt::format("{:.6g}", value);
}

std::string csv_line(const EpochReport& report, const std::vector<Metric>& metrics, const std::string& time) {
  std::string val;
  for (const Metric& metric : metrics) val += csv_number(metric.of(report.val)) + ",";
  return fmt::format("{},{},{:.6g},{},{}{:.6g},{:.6g},{:.4f},{:.3f},{},{}\n", report.epoch, report.step,
                     report.train_loss, csv_number(report.train_top1), val, report.rate, report.images_per_second,
                     report.wait.largest(), report.seconds, report.skipped, time);
}

// Returns whether charts and sums can use the value: the file may be edited. Other values count as missing.
constexpr double most_number = 1e100;
constexpr std::uint64_t most_whole = std::uint64_t(1) << 53;

bool is_usable(const MetricsLine& value) {
  return value.is_number() && std::abs(value.get<double>()) <= most_number;
}

double number_in(const MetricsLine& line, const char* key, double missing = 0) {
  const auto found = line.find(key);
  return found != line.end() && is_usable(*found) ? found->get<double>() : missing;
}

std::int64_t whole_in(const MetricsLine& line, const char* key) {
  const auto found = line.find(key);
  const bool usable = found != line.end() && found->is_number_unsigned() && found->get<std::uint64_t>() <= most_whole;
  return usable ? found->get<std::int64_t>() : 0;
}

std::string val_key(const Metric& metric) {
  return std::string("val_") + metric.name;
}

std::string text_in(const MetricsLine& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

// Copied to the table unchanged.
std::string time_in(const MetricsLine& line) {
  const std::string time = text_in(line, "time");
  return time.find_first_not_of("0123456789-:TZ") == std::string::npos ? time : "";
}

DataWait wait_in(const MetricsLine& line) {
  DataWait wait{{number_in(line, "data_wait")}};
  if (const auto all = line.find("data_wait_by_rank"); all != line.end() && all->is_array()) {
    wait.shares.clear();
    for (const MetricsLine& share : *all) wait.shares.push_back(is_usable(share) ? share.get<double>() : 0.0);
  }
  return wait;
}

void put_wait(const DataWait& wait, MetricsLine& line) {
  line["data_wait"] = wait.largest();
  if (wait.is_of_several()) line["data_wait_by_rank"] = wait.shares;
}

template <class Report>
void put_loss_scale(const Report& report, MetricsLine& line) {
  if (report.loss_scale > 0) line.update({{"loss_scale", report.loss_scale}, {"skipped_steps", report.skipped_steps}});
}

template <class Report>
void take_loss_scale(const MetricsLine& line, Report& report) {
  report.loss_scale = number_in(line, "loss_scale"), report.skipped_steps = whole_in(line, "skipped_steps");
}

StepReport step_from(const MetricsLine& line) {
  StepReport report;
  report.epoch = whole_in(line, "epoch"), report.step = whole_in(line, "step"), report.batch = whole_in(line, "batch");
  report.loss = number_in(line, "loss", std::nan("")), report.rate = number_in(line, "learning_rate");
  report.images_per_second = number_in(line, "images_per_second"), report.wait = wait_in(line);
  report.skipped = whole_in(line, "skipped");
  take_loss_scale(line, report);
  return report;
}

EpochReport epoch_from(const MetricsLine& line) {
  EpochReport report;
  report.epoch = whole_in(line, "epoch"), report.epochs = whole_in(line, "epochs");
  report.step = whole_in(line, "step"), report.train_loss = number_in(line, "train_loss");
  if (const auto top1 = line.find("train_top1"); top1 != line.end() && is_usable(*top1)) report.train_top1 = *top1;
  report.rate = number_in(line, "learning_rate"), report.images_per_second = number_in(line, "images_per_second");
  report.wait = wait_in(line), report.seconds = number_in(line, "seconds");
  report.skipped = whole_in(line, "skipped");
  take_loss_scale(line, report);
  report.best = line.value("best", MetricsLine()) == true;
  report.has_validation = line.contains("val_loss");
  for (const Metric& metric : every_metric())
    if (const auto found = line.find(val_key(metric)); found != line.end() && is_usable(*found))
      report.val.*metric.score = *found;
  return report;
}

// Calls use() for each line that is a JSON object. Skips other lines, which a crash or an edit truncated.
template <class Use>
void for_each_line(const std::string& run_folder, const Use& use) {
  const std::string path = path_in(run_folder, "metrics.jsonl");
  std::ifstream file(path);
  if (!file && std::filesystem::exists(path))
    throw Error(ErrorKind::data, join("cannot open '", printable(path), "': ", std::strerror(errno)));
  for (std::string text; std::getline(file, text);) {
    const MetricsLine line = MetricsLine::parse(text, nullptr, false);
    if (line.is_object()) use(text, line, text_in(line, "kind"));
  }
}

// Removes the lines after `start` from metrics.jsonl and metrics.csv and returns the rest. An epoch's line is written
// before its checkpoint, so a step line of that epoch may be kept while its epoch line is removed.
History drop_later_lines(const std::string& folder, const std::vector<Metric>& metrics, const RunState& start) {
  History history;
  std::string kept, table = csv_header(metrics);
  for_each_line(folder, [&](const std::string& text, const MetricsLine& line, const std::string& kind) {
    if (kind == "step" && whole_in(line, "step") <= start.step) {
      history.add(step_from(line));
      kept += text + "\n";
    }
    if (kind == "epoch" && whole_in(line, "epoch") <= start.epoch) {
      history.epochs.push_back(epoch_from(line));
      kept += text + "\n";
      table += csv_line(history.epochs.back(), metrics, time_in(line));
    }
  });
  write_file_atomically(path_in(folder, "metrics.jsonl"), kept);
  write_file_atomically(path_in(folder, "metrics.csv"), table);
  return history;
}

}  // namespace

void History::add(const StepReport& step) {
  constexpr std::size_t most_steps = 4000;
  if (seen_++ % stride_ == 0) steps.push_back(step);
  if (steps.size() < most_steps) return;
  for (std::size_t i = 1; i < most_steps / 2; ++i) steps[i] = std::move(steps[2 * i]);
  steps.resize(most_steps / 2);
  stride_ *= 2;
}

MetricsLine to_json(const EpochReport& report) {
  MetricsLine line = {{"epoch", report.epoch},
                      {"epochs", report.epochs},
                      {"step", report.step},
                      {"train_loss", report.train_loss},
                      {"train_top1", report.train_top1},
                      {"learning_rate", report.rate},
                      {"images_per_second", report.images_per_second},
                      {"seconds", report.seconds},
                      {"skipped", report.skipped},
                      {"best", report.best}};
  put_wait(report.wait, line);
  put_loss_scale(report, line);
  for (const Metric& metric : every_metric())
    if (report.has_validation && (metric.score == &Scores::loss || !std::isnan(metric.of(report.val))))
      line[val_key(metric)] = metric.of(report.val);
  return line;
}

Metrics::Metrics(const std::string& run_folder, const std::vector<Metric>& metrics, std::int64_t steps_per_epoch,
                 const RunState& start)
    : metrics_(metrics),
      every_(std::max<std::int64_t>(1, steps_per_epoch / 50)),
      history_(drop_later_lines(run_folder, metrics, start)) {
  lines_.open(path_in(run_folder, "metrics.jsonl"), std::ios::app);
  table_.open(path_in(run_folder, "metrics.csv"), std::ios::app);
  if (!lines_ || !table_) throw Error("cannot write the metrics in " + run_folder);
}

void Metrics::on_step(const StepReport& report) {
  MetricsLine line = {{"kind", "step"},
                      {"epoch", report.epoch},
                      {"batch", report.batch},
                      {"step", report.step},
                      {"loss", report.loss},
                      {"learning_rate", report.rate},
                      {"images_per_second", report.images_per_second},
                      {"skipped", report.skipped},
                      {"time", now()}};
  put_wait(report.wait, line);
  put_loss_scale(report, line);
  lines_ << json_text(line) << '\n' << std::flush;
  history_.add(report);
}

void Metrics::on_epoch(const EpochReport& report) {
  const std::string time = now();
  MetricsLine line = to_json(report);
  line.update({{"kind", "epoch"}, {"time", time}});
  lines_ << json_text(line) << '\n' << std::flush;
  table_ << csv_line(report, metrics_, time) << std::flush;
  if (!lines_ || !table_) throw Error("the metrics could not be written: is the disk full?");
  history_.epochs.push_back(report);
}

History read_history(const std::string& run_folder) {
  History history;
  for_each_line(run_folder, [&](const std::string&, const MetricsLine& line, const std::string& kind) {
    if (kind == "step") history.add(step_from(line));
    if (kind == "epoch") history.epochs.push_back(epoch_from(line));
  });
  return history;
}

}  // namespace twiddle
