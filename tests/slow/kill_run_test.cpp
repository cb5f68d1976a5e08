#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "tests/apps/ranks_by_mpi.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

const std::vector<std::string> saving_often = {
    "--set", "train.checkpoint_every=7", "--set", "deterministic=true", "--epochs", "12"};

std::vector<std::string> with(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// A run is killed repeatedly at any point and resumed each time. It ends with the weights of an undisturbed run and
// leaves no other files than such a run.
TEST(KillRun, RepeatedKillsKeepFinalWeights) {
  const fs::path out = fresh_folder("kill_run");
  const std::vector<std::string> train = {"train", "models/digits.yaml", "--out", out.string()};
  ASSERT_EQ(run_program(with(train, saving_often)).code, 0);
  const fs::path untouched = out / "digits-001", killed = out / "digits-002";

  std::mt19937 random(1);
  int kills = 0;
  for (bool done = false; !done;) {
    const std::vector<std::string> go_on = {"train", "--resume", killed.string()};
    if (!has_checkpoint(killed)) fs::remove_all(killed);
    Program program(has_checkpoint(killed) ? go_on : with(train, saving_often));
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution(20, 300)(random)));
    if (++kills < 40) program.signal(SIGKILL);
    const int code = program.wait();
    ASSERT_TRUE(code == 0 || code == 128 + SIGKILL) << code << program.err();
    done = code == 0;
  }
  EXPECT_GT(kills, 2) << "too few kills: the test proves little";
  for (const char* file : {"best.safetensors", "checkpoints/step-00000564/model.safetensors"})
    EXPECT_TRUE(read_text(untouched / file) == read_text(killed / file)) << file << " after " << kills << " kills";
  for (const fs::path folder : {"", "checkpoints"})
    for (const auto& entry : fs::directory_iterator(killed / folder))
      EXPECT_TRUE(fs::exists(untouched / folder / entry.path().filename())) << entry.path();
  fs::remove_all(out);
}

}  // namespace
}  // namespace twiddle
