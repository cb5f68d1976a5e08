#include "apps/report/metrics.h"
#include "models/checkpoints/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>
#include <regex>

#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

void write_epochs(Metrics& metrics, std::int64_t first, std::int64_t last) {
  for (std::int64_t epoch = first; epoch <= last; ++epoch) {
    StepReport step;
    step.epoch = epoch, step.step = 10 * epoch, step.skipped = 2;
    metrics.on_step(step);
    EpochReport report;
    report.epoch = epoch, report.step = 10 * epoch, report.train_loss = 1.0 / static_cast<double>(epoch);
    report.train_top1 = 0.25;
    metrics.on_epoch(report);
  }
}

RunState at(std::int64_t epoch, std::int64_t step) {
  RunState state;
  state.epoch = epoch, state.step = step;
  return state;
}

std::vector<std::int64_t> epochs_of(const History& history) {
  std::vector<std::int64_t> epochs;
  for (const EpochReport& report : history.epochs) epochs.push_back(report.epoch);
  return epochs;
}

// Killed after the second epoch's line was written and before its checkpoint: the newest checkpoint is that of the
// first epoch, or one of the second epoch that was interrupted in its validation.
TEST(Metrics, RemoveUnsavedEpochOnResume) {
  for (const std::int64_t step : {10, 20}) {
    const auto folder = fresh_folder("metrics");
    {
      Metrics killed(folder, metrics_of(TargetKind::label), 100, at(0, 0));
      write_epochs(killed, 1, 2);
    }
    Metrics resumed(folder, metrics_of(TargetKind::label), 100, at(1, step));
    write_epochs(resumed, 2, 3);
    EXPECT_EQ(epochs_of(read_history(folder)), (std::vector<std::int64_t>{1, 2, 3}));
    const std::string table = read_text(folder / "metrics.csv");
    EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4) << table;
  }
}

TEST(Metrics, KeepHistoryInMemory) {
  const auto folder = fresh_folder("metrics");
  {
    Metrics first(folder, metrics_of(TargetKind::label), 100, at(0, 0));
    write_epochs(first, 1, 2);
    EXPECT_EQ(epochs_of(first.history()), (std::vector<std::int64_t>{1, 2}));
  }
  Metrics resumed(folder, metrics_of(TargetKind::label), 100, at(2, 20));
  write_epochs(resumed, 3, 3);
  EXPECT_EQ(epochs_of(resumed.history()), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(resumed.history().steps.size(), 3u);
}

TEST(Metrics, KeepTimestampsOnRewrite) {
  const auto folder = fresh_folder("metrics");
  {
    Metrics first(folder, metrics_of(TargetKind::label), 100, at(0, 0));
    write_epochs(first, 1, 1);
  }
  const std::string before = read_text(folder / "metrics.csv");
  EXPECT_TRUE(std::regex_search(before, std::regex(R"(,20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\n$)"))) << before;
  Metrics resumed(folder, metrics_of(TargetKind::label), 100, at(1, 10));
  EXPECT_EQ(read_text(folder / "metrics.csv"), before);
}

TEST(Metrics, RoundTrip) {
  const auto folder = fresh_folder("metrics");
  Metrics metrics(folder, metrics_of(TargetKind::label), 100, at(0, 0));
  write_epochs(metrics, 1, 2);
  const History history = read_history(folder);
  ASSERT_EQ(history.steps.size(), 2u);
  EXPECT_EQ(history.steps[1].step, 20);
  EXPECT_EQ(history.steps[1].skipped, 2);
  EXPECT_EQ(history.epochs.at(1).train_loss, 0.5);
  EXPECT_EQ(history.epochs.at(1).train_top1, 0.25);
}

TEST(Metrics, RecordDataWaitOfEveryRank) {
  const auto folder = fresh_folder("metrics");
  Metrics metrics(folder, metrics_of(TargetKind::label), 100, at(0, 0));
  EpochReport alone, shared;
  alone.epoch = 1, alone.wait = {{0.25}};
  shared.epoch = 2, shared.wait = {{0.125, 0.5, 0}};
  metrics.on_epoch(alone);
  metrics.on_epoch(shared);
  const History history = read_history(folder);
  EXPECT_EQ(history.epochs.at(0).wait.shares, alone.wait.shares);
  EXPECT_EQ(history.epochs.at(1).wait.shares, shared.wait.shares);
  EXPECT_EQ(count(read_text(folder / "metrics.jsonl"), "data_wait_by_rank"), 1u);
  EXPECT_NE(read_text(folder / "metrics.csv").find(",0.5000,"), std::string::npos);
}

// The steps of a long run are thinned evenly.
TEST(Metrics, HistoryKeepsLimitedSteps) {
  History history;
  for (std::int64_t number = 0; number < 100000; ++number) {
    StepReport step;
    step.step = number;
    history.add(step);
  }
  ASSERT_LE(history.steps.size(), 4000u);
  ASSERT_GE(history.steps.size(), 2000u);
  for (std::size_t i = 2; i < history.steps.size(); ++i)
    EXPECT_EQ(history.steps[i].step - history.steps[i - 1].step, history.steps[1].step);
  EXPECT_GT(history.steps.back().step, 99900);
}

TEST(Metrics, ReadUsablePartsOfEditedLines) {
  const auto folder = fresh_folder("metrics");
  std::ofstream(folder / "metrics.jsonl")
      << R"({"kind":"step","step":18446744073709551615,"loss":1e300,"images_per_second":-1e308})"
      << "\n"
      << R"({"kind":"epoch","epoch":-9223372036854775808,"step":1.5,"val_loss":1e307,"time":"a\nb,c"})"
      << "\n"
      << "[[[\n"
      << R"({"kind":7})"
      << "\n";
  const History history = read_history(folder);
  EXPECT_EQ(history.steps.at(0).step, 0);
  EXPECT_TRUE(std::isnan(history.steps.at(0).loss));
  EXPECT_EQ(history.epochs.at(0).epoch, 0);
  EXPECT_TRUE(std::isnan(history.epochs.at(0).val.loss));
  const Metrics resumed(folder, metrics_of(TargetKind::label), 100, at(1, 1));
  const std::string table = read_text(folder / "metrics.csv");
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 2) << table;
}

TEST(Metrics, ReadEpochsWithoutTrainingAccuracy) {
  const auto folder = fresh_folder("metrics");
  std::ofstream(folder / "metrics.jsonl") << R"({"kind":"epoch","epoch":1,"step":10,"train_loss":0.5})"
                                          << "\n";
  EXPECT_TRUE(std::isnan(read_history(folder).epochs.at(0).train_top1));
}

}  // namespace
}  // namespace twiddle
