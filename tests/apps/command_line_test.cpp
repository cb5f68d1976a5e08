#include <gtest/gtest.h>

#include "models/config/experiment.h"
#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

TEST(CommandLine, SuggestsSimilarVerb) {
  const Finished run = run_program({"trian", "models/digits.yaml"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err, "error: unknown verb 'trian'; did you mean 'train'?\n");
  EXPECT_EQ(run.out, "");
}

TEST(CommandLine, SuggestsSimilarFlag) {
  const Finished run = run_program({"train", "models/digits.yaml", "--epoch=3"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err, "error: unknown flag '--epoch'; did you mean '--epochs'?\n");
}

TEST(CommandLine, NamesProgramOfBenchmarks) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"bench"},
        {"bench", "sweep", "--device", "cpu", "--layers", "L1", "--csv", "a.csv"},
        {"help", "bench"}}) {
    const Finished run = run_program(arguments);
    EXPECT_EQ(run.code, 2);
    EXPECT_EQ(run.err,
              "error: there is no verb 'bench': twiddle-bench measures as papers did; build it by 'cmake --build "
              "build/release --target twiddle-bench'\n");
  }
}

TEST(CommandLine, ListsVerbsIfNoneIsGiven) {
  const Finished run = run_program({});
  EXPECT_EQ(run.code, 2);
  for (const char* verb : {"train", "eval", "predict", "time", "conv", "summary", "check", "devices"})
    EXPECT_NE(run.err.find(std::string("\n  ") + verb + " "), std::string::npos) << verb;
}

TEST(CommandLine, HelpAndVersionExitWithZero) {
  EXPECT_EQ(run_program({"--version"}).out.rfind("twiddle ", 0), 0u);
  const Finished help = run_program({"train", "--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("--resume"), std::string::npos);
  EXPECT_NE(help.out.find("--epochs"), std::string::npos);
}

TEST(CommandLine, HelpIsVerb) {
  EXPECT_EQ(run_program({"help"}).out, run_program({"--help"}).out);
  EXPECT_EQ(run_program({"help", "train"}).out, run_program({"train", "--help"}).out);
  EXPECT_EQ(run_program({"help", "train"}).code, 0);
  for (const char* word : {"--help", "help", "-h"})
    EXPECT_EQ(run_program({"help", word}).out, run_program({"--help"}).out);
  EXPECT_EQ(run_program({"help", "trian"}).err, "error: unknown verb 'trian'; did you mean 'train'?\n");
}

TEST(CommandLine, WarnsOfMoreThreadsThanCores) {
  const Finished run = run_program({"check", "models/digits.yaml", "--threads", "4000"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("warning: 4,000 threads share "), std::string::npos) << run.err;
}

TEST(CommandLine, AcceptsSharedFlagsAroundVerb) {
  const Finished before = run_program({"--batch-size", "7", "summary", "models/digits.yaml"});
  const Finished after = run_program({"summary", "models/digits.yaml", "--set", "train.batch_size=7"});
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_NE(before.out.find("memory at batch 7:"), std::string::npos) << before.out;
  EXPECT_EQ(before.out.find("evaluation"), std::string::npos) << before.out;
  // The memory of the process itself differs between runs.
  const auto without_program = [](const std::string& text) { return text.substr(0, text.find(" + program ")); };
  EXPECT_EQ(without_program(before.out), without_program(after.out));
}

TEST(CommandLine, LastOverrideWins) {
  const Finished run =
      run_program({"summary", "models/digits.yaml", "--batch-size", "7", "--set", "train.batch_size=9"});
  EXPECT_NE(run.out.find("memory at batch 9:"), std::string::npos) << run.out;
}

TEST(CommandLine, RefusesSharedFlagUnusedByVerb) {
  const Finished run = run_program({"--epochs", "3", "devices"});
  EXPECT_EQ(run.code, 2);
  EXPECT_EQ(run.err, "error: 'devices' does not take --epochs; 'twiddle devices --help' lists what it takes\n");
}

TEST(CommandLine, NamesFlagWithInvalidValue) {
  const Finished run = run_program({"train", "models/digits.yaml", "--epochs", "many", "--batch-size", "0"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("--epochs many"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("--batch-size 0"), std::string::npos) << run.err;
}

TEST(CommandLine, KeepsPathsAndNamesVerbatim) {
  for (const char* const out : {"runs #2", "\"q\"", "[a]", "5", "~", "it's: so"}) {
    const Finished run = run_program({"train", "models/digits.yaml", "--out", out, "--print-config"});
    ASSERT_EQ(run.code, 0) << run.err;
    const auto printed = load_experiment_text(run.out, "printed").config;
    EXPECT_EQ(printed.train.out, out) << run.out;
  }
  const Finished run = run_program({"train", "models/digits.yaml", "--out", "lat\xe9", "--print-config"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("the value is not text"), std::string::npos) << run.err;
}

TEST(CommandLine, SetRequiresKeyAndValue) {
  const Finished run = run_program({"summary", "models/digits.yaml", "--set", "epochs"});
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("--set needs key=value"), std::string::npos) << run.err;
}

TEST(CommandLine, MissingFilesHaveExitCodes) {
  EXPECT_EQ(run_program({"train", "no/such.yaml"}).code, 2);
  EXPECT_EQ(run_program({"train"}).code, 2);
  EXPECT_EQ(run_program({"eval", "no/such/run"}).code, 3);
  EXPECT_EQ(run_program({"train", "--resume", "models"}).code, 3);
  EXPECT_EQ(run_program({"train", "--resume", "no/such/run"}).code, 2);
  EXPECT_EQ(run_program({"train", "models/digits.yaml", "--resume", "models"}).code, 2);
}

TEST(CommandLine, UnusableDeviceExitsWithFour) {
  const Finished run = run_program({"time", "models/digits.yaml", "--device", "cuda:99"});
  EXPECT_EQ(run.code, 4) << run.err;
}

TEST(CommandLine, ChecksOutputPathBeforeWork) {
  const std::filesystem::path folder = fresh_folder("results");
  const Finished refused = run_program({"summary", "models/digits.yaml", "--json", "/proc/no/such.json"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.out, "") << "nothing was done before";
  EXPECT_EQ(run_program({"summary", "models/digits.yaml", "--json", (folder / "new/a.json").string()}).code, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "new" / "a.json"));
}

TEST(CommandLine, FailsIfDiskIsFull) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  EXPECT_EQ(run_program({"summary", "models/digits.yaml", "--json", "/dev/full"}).code, 1);
}

}  // namespace
}  // namespace twiddle
