#include "apps/metrics.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "framework/error.h"
#include "models/atomic_file.h"
#include "models/json_text.h"

namespace twiddle {
namespace {

using nlohmann::json;

constexpr const char* csv_header =
    "epoch,step,train_loss,train_top1,val_loss,val_top1,val_top5,learning_rate,images_per_second,data_wait,seconds,"
    "skipped";

std::string path_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

std::string csv_line(const EpochReport& report) {
  const std::string val = report.has_validation
                              ? fmt::format("{:.6g},{:.6g},{:.6g}", report.val_loss, report.val_top1, report.val_top5)
                              : ",,";
  const std::string top1 = std::isnan(report.train_top1) ? "" : fmt::format("{:.6g}", report.train_top1);
  return fmt::format("{},{},{:.6g},{},{},{:.6g},{:.6g},{:.4f},{:.3f},{}", report.epoch, report.step, report.train_loss,
                     top1, val, report.rate, report.images_per_second, report.wait_share, report.seconds,
                     report.skipped);
}

json to_json(const EpochReport& report) {
  json line = {{"kind", "epoch"},
               {"epoch", report.epoch},
               {"epochs", report.epochs},
               {"step", report.step},
               {"train_loss", report.train_loss},
               {"train_top1", report.train_top1},
               {"learning_rate", report.rate},
               {"images_per_second", report.images_per_second},
               {"data_wait", report.wait_share},
               {"seconds", report.seconds},
               {"skipped", report.skipped},
               {"best", report.best}};
  if (report.has_validation)
    line.update({{"val_loss", report.val_loss}, {"val_top1", report.val_top1}, {"val_top5", report.val_top5}});
  return line;
}

// A line of metrics.jsonl goes into the history; a line cut short by a crash, or by someone else, is passed over.
void read_line(const std::string& text, History& history) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object()) return;
  const auto number = [&](const char* key) {
    const auto found = line.find(key);
    return found != line.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  const auto whole = [&](const char* key) -> std::int64_t {
    const auto found = line.find(key);
    return found != line.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  };
  if (line.value("kind", json()) == "step") {
    StepReport report;
    report.epoch = whole("epoch"), report.step = whole("step"), report.batch = whole("batch");
    report.loss = number("loss"), report.rate = number("learning_rate");
    report.images_per_second = number("images_per_second"), report.wait_share = number("data_wait");
    report.skipped = whole("skipped");
    history.steps.push_back(report);
  } else if (line.value("kind", json()) == "epoch") {
    EpochReport report;
    report.epoch = whole("epoch"), report.epochs = whole("epochs"), report.step = whole("step");
    report.train_loss = number("train_loss");
    if (const auto top1 = line.find("train_top1"); top1 != line.end() && top1->is_number()) report.train_top1 = *top1;
    report.rate = number("learning_rate"), report.images_per_second = number("images_per_second");
    report.wait_share = number("data_wait"), report.seconds = number("seconds");
    report.skipped = whole("skipped");
    report.best = line.value("best", json()) == true;
    report.has_validation = line.contains("val_loss");
    report.val_loss = number("val_loss"), report.val_top1 = number("val_top1"), report.val_top5 = number("val_top5");
    history.epochs.push_back(report);
  }
}

// Leaves in metrics.jsonl and metrics.csv what lies behind a run that goes on from `start`. An epoch's line is written
// before its checkpoint, so that its last step may be behind and the epoch not yet done.
void drop_later_lines(const std::string& folder, const RunState& start) {
  std::ifstream old_lines(path_in(folder, "metrics.jsonl"));
  std::string kept, table = std::string(csv_header) + "\n";
  for (std::string line; std::getline(old_lines, line);) {
    History one;
    read_line(line, one);
    if (!one.steps.empty() && one.steps[0].step <= start.step) kept += line + "\n";
    if (one.epochs.empty() || one.epochs[0].epoch > start.epoch) continue;
    kept += line + "\n";
    table += csv_line(one.epochs[0]) + "\n";
  }
  write_file_atomically(path_in(folder, "metrics.jsonl"), kept);
  write_file_atomically(path_in(folder, "metrics.csv"), table);
}

}  // namespace

Metrics::Metrics(const std::string& run_folder, std::int64_t steps_per_epoch, const RunState& start)
    : every_(std::max<std::int64_t>(1, steps_per_epoch / 50)) {
  drop_later_lines(run_folder, start);
  lines_.open(path_in(run_folder, "metrics.jsonl"), std::ios::app);
  table_.open(path_in(run_folder, "metrics.csv"), std::ios::app);
  if (!lines_ || !table_) throw Error("cannot write the metrics in " + run_folder);
}

void Metrics::on_step(const StepReport& report) {
  const json line = {{"kind", "step"},
                     {"epoch", report.epoch},
                     {"batch", report.batch},
                     {"step", report.step},
                     {"loss", report.loss},
                     {"learning_rate", report.rate},
                     {"images_per_second", report.images_per_second},
                     {"data_wait", report.wait_share},
                     {"skipped", report.skipped}};
  lines_ << json_text(line) << '\n' << std::flush;
}

void Metrics::on_epoch(const EpochReport& report) {
  lines_ << json_text(to_json(report)) << '\n' << std::flush;
  table_ << csv_line(report) << '\n' << std::flush;
  if (!lines_ || !table_) throw Error("the metrics could not be written: is the disk full?");
}

History read_history(const std::string& run_folder) {
  History history;
  std::ifstream file(path_in(run_folder, "metrics.jsonl"));
  for (std::string line; std::getline(file, line);) read_line(line, history);
  return history;
}

}  // namespace twiddle
