#include "apps/verbs/progress.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "apps/command_line/text_table.h"
#include "apps/command_line/verb_options.h"
#include "tests/support/temp_path.h"

namespace twiddle {
namespace {

StepReport some_step() {
  StepReport report;
  report.epoch = 3, report.batch = 182, report.batches = 250, report.step = 341;
  report.step_of_epoch = 91, report.steps_of_epoch = 125;
  report.loss = 0.412, report.rate = 0.025, report.images_per_second = 3910, report.wait = {{0.02}};
  report.eta_seconds = 6;
  return report;
}

TEST(Progress, BarFitsTerminal) {
  EXPECT_EQ(bar_line(some_step(), 5, 120),
            "epoch 3/5 [==============>.....] 91/125  loss 0.4120  lr 0.025  3,910 images/s  eta 0:06  data wait 2%");
  for (const int width : {1, 20, 60, 80, 95}) EXPECT_LT(bar_line(some_step(), 5, width).size(), std::max(2, width));
  EXPECT_NE(bar_line(some_step(), 5, 80).find("eta 0:06"), std::string::npos);
}

TEST(Progress, PlainLineHasSameValues) {
  EXPECT_EQ(plain_line(some_step()),
            "    3  step 91/125  loss 0.4120  lr 0.025  3,910 images/s  eta 0:06  data wait 2%");
}

TEST(Progress, ReportsSkippedImages) {
  StepReport report = some_step();
  report.skipped = 1234;
  EXPECT_TRUE(plain_line(report).ends_with("data wait 2%  skipped 1,234")) << plain_line(report);
  EXPECT_EQ(skipped_line(1), "1 image could not be read and was left out");
}

TEST(Progress, ReportsRankWithLongestDataWait) {
  StepReport report = some_step();
  report.wait = {{0.02, 0.6, 0.1}};
  EXPECT_TRUE(plain_line(report).ends_with("data wait 60% (rank 1)")) << plain_line(report);
}

TEST(Progress, RowsMatchHeader) {
  EpochReport report;
  report.epoch = 2, report.train_loss = 0.5, report.seconds = 2;
  report.val = {0.5, 0.25, 0.75, 0.5, 24.31};
  for (const TargetKind kind : {TargetKind::label, TargetKind::labels, TargetKind::input})
    EXPECT_EQ(table_row(report, metrics_of(kind)).size(), table_header(metrics_of(kind)).size());
  EXPECT_EQ(table_row(report, {}).size(), table_header({}).size());
}

TEST(Progress, PrintsTableHeaderFirst) {
  const std::string log = temp_path("progress_head.log");
  std::filesystem::remove(log);
  Console console(-1);
  console.log_to(log);
  if (console.terminal()) GTEST_SKIP() << "on a terminal a bar is drawn in place";
  Progress progress(console, 5, metrics_of(TargetKind::label));
  progress.on_step(some_step());
  progress.on_epoch({});
  std::ifstream file(log);
  std::string first, second;
  std::getline(std::getline(file, first), second);
  EXPECT_EQ(first, table_header(metrics_of(TargetKind::label)));
  EXPECT_EQ(second, plain_line(some_step()));
}

TEST(Progress, ReportsWhyStepsAreNotCaptured) {
  const std::string log = temp_path("progress.log");
  std::filesystem::remove(log);
  Console console(-1);
  console.log_to(log);
  Progress(console, 5, {}).on_not_captured("a layer waits");
  std::string line;
  std::getline(std::ifstream(log) >> std::ws, line);
  EXPECT_TRUE(line.ends_with("no CUDA graph, steps are launched kernel by kernel: a layer waits")) << line;
}

TEST(Progress, FormatsDurations) {
  EXPECT_EQ(format_duration(6.4), "0:06");
  EXPECT_EQ(format_duration(3723), "1:02:03");
  EXPECT_EQ(format_duration(-1), "-");
}

TEST(TextTable, AlignsNumbersRightAndWordsLeft) {
  TextTable table({"class", "images"});
  table.add({"é", "5"});
  table.add({"dog", "1,500"});
  EXPECT_EQ(table.text(), "class  images\né           5\ndog     1,500\n");
}

TEST(Validators, RefusePartlyParsedNumbers) {
  EXPECT_EQ(whole_number_between(1, 10)("10"), "");
  for (const char* text : {"", "0", "11", "5x", "1e1", "99999999999999999999"})
    EXPECT_NE(whole_number_between(1, 10)(text), "") << text;
  EXPECT_EQ(number_between(0, 1)("5e-1"), "");
  for (const char* text : {"", "nan", "2", "0.5s"}) EXPECT_NE(number_between(0, 1)(text), "") << text;
}

}  // namespace
}  // namespace twiddle
