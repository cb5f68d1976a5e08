#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Training on a few batches of the shipped digits, in a folder of the test's own.
class Train : public testing::Test {
 protected:
  Train() : out_(fresh_folder("train")) {}
  ~Train() override { fs::remove_all(out_); }

  std::vector<std::string> digits(std::vector<std::string> more) const {
    std::vector<std::string> all = {"train", "models/digits.yaml", "--out", out_.string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  fs::path run(int number) const { return out_ / ("digits-00" + std::to_string(number)); }
  std::size_t lines(const fs::path& file) const {
    const std::string text = read_text(file);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }

  fs::path out_;
};

TEST_F(Train, LeavesARunFolderThatEvalAndPredictUnderstand) {
  const Finished train = run_program(digits({"--epochs", "2"}));
  ASSERT_EQ(train.code, 0) << train.err;
  EXPECT_NE(train.out.find("best val-top1"), std::string::npos) << train.out;
  for (const char* name : {"config.yaml", "environment.json", "metrics.jsonl", "metrics.csv", "train.log",
                           "best.safetensors", "report.html", "checkpoints"})
    EXPECT_TRUE(fs::exists(run(1) / name)) << name;
  EXPECT_EQ(lines(run(1) / "metrics.csv"), 3u);
  EXPECT_NE(read_text(run(1) / "report.html").find("data:image/png;base64,"), std::string::npos);

  const Finished eval = run_program({"eval", run(1).string(), "--json", "-", "-q"});
  ASSERT_EQ(eval.code, 0) << eval.err;
  const auto scores = nlohmann::json::parse(eval.out);
  EXPECT_GT(scores.at("top1").get<double>(), 0.7);
  EXPECT_EQ(scores.at("classes").size(), 10u);
  EXPECT_EQ(scores.at("images"), 297);

  const Finished predict = run_program({"predict", run(1).string(), "no/such.png"});
  EXPECT_EQ(predict.code, 3);
  std::ofstream(out_ / "broken.png") << "not a picture";
  const Finished broken = run_program({"predict", run(1).string(), (out_ / "broken.png").string()});
  EXPECT_EQ(broken.code, 3);
  EXPECT_NE(broken.err.find("broken.png"), std::string::npos) << broken.err;
}

TEST_F(Train, APipeGetsPlainLinesAndQuietGetsNone) {
  const Finished plain = run_program(digits({"--epochs", "2", "--limit-batches", "3"}));
  EXPECT_EQ(plain.err.find('\r'), std::string::npos);
  EXPECT_EQ(plain.err.find('\033'), std::string::npos);
  EXPECT_NE(plain.err.find("\n    2 "), std::string::npos) << plain.err;
  const Finished quiet = run_program(digits({"--epochs", "1", "--limit-batches", "3", "-q"}));
  EXPECT_EQ(quiet.code, 0);
  EXPECT_EQ(quiet.err, "");
}

TEST_F(Train, ResumingEqualsGoingStraightThrough) {
  ASSERT_EQ(run_program(digits({"--epochs", "2", "--set", "train.schedule=constant"})).code, 0);
  ASSERT_EQ(run_program(digits({"--epochs", "1", "--set", "train.schedule=constant"})).code, 0);
  const Finished resumed = run_program({"train", "--resume", run(2).string(), "--epochs", "2"});
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("changed since the run began: train.epochs: 1 -> 2"), std::string::npos) << resumed.err;
  const std::string weights = "checkpoints/step-00000094/model.safetensors";
  EXPECT_TRUE(fs::exists(run(1) / weights));
  EXPECT_TRUE(read_text(run(1) / weights) == read_text(run(2) / weights));
  EXPECT_EQ(lines(run(1) / "metrics.jsonl"), lines(run(2) / "metrics.jsonl"));
}

TEST_F(Train, ResumingFromAnOlderCheckpointDropsLaterMetrics) {
  ASSERT_EQ(run_program(digits({"--epochs", "3", "--limit-batches", "2"})).code, 0);
  const auto checkpoint = run(1) / "checkpoints" / "step-00000002";
  ASSERT_EQ(run_program({"train", "--resume", checkpoint.string(), "--limit-batches", "2", "--epochs", "2"}).code, 0);
  EXPECT_EQ(lines(run(1) / "metrics.csv"), 3u);
}

TEST_F(Train, CtrlCFinishesTheBatchSavesAndTellsHowToResume) {
  Program program(digits({"--epochs", "100000"}));
  const fs::path metrics = run(1) / "metrics.jsonl";
  for (int waited = 0; waited < 3000 && lines(metrics) < 3; ++waited)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  program.signal(SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_NE(program.err().find("stopping after this batch (Ctrl-C again: quit now)"), std::string::npos);
  EXPECT_NE(program.err().find("Resume: twiddle train --resume " + run(1).string()), std::string::npos)
      << program.err();
  EXPECT_FALSE(fs::is_empty(run(1) / "checkpoints"));
  EXPECT_EQ(run_program({"eval", run(1).string()}).code, 0);
}

TEST_F(Train, DivergenceIsCodeFiveAndNamesTheLayer) {
  const Finished train = run_program(digits({"--lr", "1000"}));
  EXPECT_EQ(train.code, 5);
  EXPECT_NE(train.err.find("loss became"), std::string::npos) << train.err;
  EXPECT_NE(train.err.find("first bad value: output of '"), std::string::npos) << train.err;
  EXPECT_NE(read_text(run(1) / "train.log").find("loss became"), std::string::npos);
}

TEST_F(Train, ARunThatCannotStartLeavesNoFolder) {
  EXPECT_EQ(run_program(digits({"--set", "data.train.images=no/such.gz"})).code, 3);
  EXPECT_TRUE(fs::is_empty(out_));
}

TEST_F(Train, DamagedFilesAreCodeThree) {
  std::ofstream(out_ / "cut.idx") << std::string("\0\0\x08\x03\0\0\0\x09", 8);
  EXPECT_EQ(run_program(digits({"--set", "data.train.images=" + (out_ / "cut.idx").string()})).code, 3);
  ASSERT_EQ(run_program(digits({"--epochs", "1", "--limit-batches", "2"})).code, 0);
  const auto checkpoint = run(1) / "checkpoints" / "step-00000002" / "model.safetensors";
  fs::resize_file(checkpoint, fs::file_size(checkpoint) / 2);
  const Finished resumed = run_program({"train", "--resume", run(1).string(), "--epochs", "2"});
  EXPECT_EQ(resumed.code, 3) << resumed.err;
  EXPECT_NE(resumed.err.find("model.safetensors"), std::string::npos) << resumed.err;
}

TEST_F(Train, PrintConfigWritesNothingAndReadsBack) {
  const Finished printed = run_program(digits({"--epochs", "7", "--print-config"}));
  ASSERT_EQ(printed.code, 0) << printed.err;
  EXPECT_TRUE(fs::is_empty(out_));
  std::ofstream(out_ / "again.yaml") << printed.out;
  const Finished again = run_program({"train", (out_ / "again.yaml").string(), "--print-config"});
  EXPECT_EQ(again.out, printed.out) << again.err;
}

}  // namespace
}  // namespace twiddle
