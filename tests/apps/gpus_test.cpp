#include <gtest/gtest.h>

#include "framework/device.h"
#include "tests/apps/runs_of_ranks.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// The program as --gpus starts it, one process per GPU.
class RanksOnGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda_device_count() < 2) GTEST_SKIP() << "fewer than two GPUs";
    out_ = fresh_folder("gpus");
  }
  void TearDown() override {
    if (!out_.empty()) fs::remove_all(out_);
  }

  std::vector<std::string> digits(int gpus, const std::vector<std::string>& more) const {
    std::vector<std::string> command{"train",  "models/digits.yaml", "--device",  "cuda",
                                     "--gpus", std::to_string(gpus), "--set",     "deterministic=true",
                                     "--out",  out_.string(),        "--workers", "1"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  fs::path folder(int number) const { return out_ / ("digits-00" + std::to_string(number)); }

  fs::path out_;
};

TEST_F(RanksOnGpus, MatchOneGpuAndAreReproducible) {
  for (const int gpus : {1, 2, 2}) {
    const Finished finished = run_program(digits(gpus, twenty_steps));
    ASSERT_EQ(finished.code, 0) << finished.err;
  }
  EXPECT_LT(difference(weights_at(folder(2), "20"), weights_at(folder(1), "20")), 1e-5);
  EXPECT_EQ(weights_at(folder(3), "20"), weights_at(folder(2), "20"));
}

TEST_F(RanksOnGpus, ResumeOnOtherNumberOfGpus) {
  ASSERT_EQ(run_program(digits(2, twenty_steps)).code, 0);
  const auto untouched = weights_at(folder(1), "20");
  const auto resume = [&](const std::string& gpus, const std::string& step) {
    const fs::path checkpoint = folder(1) / "checkpoints" / ("step-000000" + step);
    return run_program({"train", "--resume", checkpoint.string(), "--gpus", gpus});
  };
  ASSERT_EQ(resume("1", "05").code, 0);
  const Finished again = resume("2", "15");
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_LT(difference(weights_at(folder(1), "20"), untouched), 1e-5);
}

const std::vector<std::string> without_end{"--epochs", "100000", "--set", "train.checkpoint_every=20"};

TEST_F(RanksOnGpus, NameCheckpointIfRankIsKilled) {
  Program program(digits(2, without_end));
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  kill(two_ranks(program.pid(), folder(1)).other, SIGKILL);
  EXPECT_EQ(program.wait(), 128 + SIGKILL);
  const std::string err = program.err();
  EXPECT_NE(err.find("rank 1 disconnected unexpectedly"), std::string::npos) << err;
  EXPECT_NE(err.find("last checkpoint: " + (folder(1) / "checkpoints" / "step-").string()), std::string::npos) << err;
  EXPECT_NE(err.find("was terminated by signal 9"), std::string::npos) << err;
}

TEST_F(RanksOnGpus, SaveOnceOnCtrlC) {
  Program program(digits(2, without_end));
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  kill(program.pid(), SIGINT);
  EXPECT_EQ(program.wait(), 130);
  EXPECT_EQ(count(program.err(), "saved step "), 1u) << program.err();
}

TEST(Gpus, AreCountedBeforeStart) {
  const Finished finished = run_program({"train", "models/digits.yaml", "--gpus", "1000"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_NE(finished.err.find("--gpus 1000: this machine has "), std::string::npos) << finished.err;
}

}  // namespace
}  // namespace twiddle
