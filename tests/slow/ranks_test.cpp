#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <random>

#include "tests/apps/ranks_by_mpi.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Several processes train, and one is killed or suspended, or the disk is full.
class RanksInTrouble : public RanksByMpi {
 protected:
  std::vector<std::string> saving_often(const std::vector<std::string>& more) const {
    return on(2, joined(digits({"--set", "train.checkpoint_every=7"}), more));
  }

  // Suspends one of the two ranks forever: all exit, with a message that names it.
  void stop_one(bool leader) {
    Program program(saving_often({"--epochs", "100000"}), TWIDDLE_MPIEXEC);
    ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
    const TwoRanks ranks = two_ranks(program.pid(), folder(1));
    kill(leader ? ranks.leader : ranks.other, SIGSTOP);
    EXPECT_NE(program.wait(), 0);
    const std::string err = program.err();
    EXPECT_NE(err.find(leader ? "no heartbeat from rank 0" : "no heartbeat from rank 1"), std::string::npos) << err;
    EXPECT_NE(err.find("last checkpoint: " + (folder(1) / "checkpoints" / "step-").string()), std::string::npos) << err;
    EXPECT_EQ(run(on(2, {program_path(), "train", "--resume", folder(1).string(), "--epochs", "1"})).code, 0);
  }
};

TEST_F(RanksInTrouble, ExitIfOneHangs) {
  stop_one(false);
}

TEST_F(RanksInTrouble, ExitIfFirstHangs) {
  stop_one(true);
}

// Suspends all ranks at once for longer than the heartbeat limit, as a batch system does: they continue.
TEST_F(RanksInTrouble, ContinueAfterSuspension) {
  Program program(saving_often({"--epochs", "100000"}), TWIDDLE_MPIEXEC);
  ASSERT_TRUE(program.comes_to([&] { return has_checkpoint(folder(1)); })) << program.err();
  const std::vector<pid_t> ranks = ranks_of(program.pid());
  for (const pid_t rank : ranks) kill(rank, SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(35));
  for (const pid_t rank : ranks) kill(rank, SIGCONT);
  std::this_thread::sleep_for(std::chrono::seconds(3));
  kill(ranks.at(0), SIGINT);
  EXPECT_EQ(program.wait(), 130) << program.err();
}

// Kills either of the two at any moment, repeatedly: the run ends with the weights of an undisturbed one.
TEST_F(RanksInTrouble, RepeatedKillsKeepFinalWeights) {
  ASSERT_EQ(run(saving_often({"--epochs", "6"})).code, 0);
  const fs::path untouched = folder(1), killed = folder(2);
  const std::vector<std::string> resume =
      on(2, {program_path(), "train", "--resume", killed.string(), "--device", "cpu"});
  const auto last = [](const fs::path& run) {
    fs::path newest;
    if (has_checkpoint(run))
      for (const auto& entry : fs::directory_iterator(run / "checkpoints")) newest = std::max(newest, entry.path());
    return newest;
  };
  std::mt19937 random(1);
  int kills = 0;
  for (bool done = false; !done;) {
    if (!has_checkpoint(killed)) fs::remove_all(killed);
    Program program(has_checkpoint(killed) ? resume : saving_often({"--epochs", "6"}), TWIDDLE_MPIEXEC);
    // Soon after the next checkpoint, whatever the speed of the machine.
    program.comes_to([&, before = last(killed)] { return last(killed) != before; });
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution(0, 50)(random)));
    const std::vector<pid_t> ranks = ranks_of(program.pid());
    if (kills < 6 && ranks.size() == 2) ++kills, kill(ranks[random() % 2], SIGKILL);
    done = program.wait() == 0;
  }
  EXPECT_GT(kills, 2) << "too few kills: the test proves little";
  EXPECT_EQ(last(killed).filename(), last(untouched).filename());
  for (const char* file : {"model.safetensors", "state.safetensors"})
    EXPECT_TRUE(read_text(last(untouched) / file) == read_text(last(killed) / file))
        << file << " after " << kills << " kills";
}

// Rank 0 writes, and its failure stops the others.
TEST_F(RanksInTrouble, KeepCheckpointIfDiskIsFull) {
  if (mount("tmpfs", out_.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "no small disk can be mounted: " << std::strerror(errno);
  Program program(saving_often({"--epochs", "100000", "--set", "train.keep=1"}), TWIDDLE_MPIEXEC);
  EXPECT_TRUE(program.comes_to([&] { return fs::exists(folder(1) / "best.safetensors"); })) << program.err();
  {
    std::ofstream file(out_ / "filler");
    while (file << std::string(4096, 'x') << std::flush) {
    }
  }
  EXPECT_EQ(program.wait(), 1);
  EXPECT_NE(program.err().find("No space left on device"), std::string::npos) << program.err();
  fs::remove(out_ / "filler");
  EXPECT_EQ(run(on(2, {program_path(), "train", "--resume", folder(1).string(), "--epochs", "1"})).code, 0);
  umount2(out_.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace twiddle
