#include "apps/ranks/rank_processes.h"

#include <gtest/gtest.h>

#include "tests/apps/run_program.h"

namespace fs = std::filesystem;

namespace twiddle {
namespace {

// Shell scripts instead of ranks.
class RankProcesses3 : public testing::Test {
 protected:
  void SetUp() override { folder_ = fresh_folder("rank_processes"); }
  void TearDown() override { fs::remove_all(folder_); }

  // Returns the exit code; stores what was reported, and what each rank has written to "$OUT.rank".
  int run(const std::string& script) {
    setenv("OUT", (folder_ / "rank").c_str(), 1);
    testing::internal::CaptureStderr();
    const int code = run_rank_processes("/bin/sh", {"sh", "-c", script}, 3);
    reported_ = testing::internal::GetCapturedStderr();
    return code;
  }
  std::string written(int rank) const { return read_text(folder_ / ("rank." + std::to_string(rank))); }

  fs::path folder_;
  std::string reported_;
};

const std::string waits = "while true; do sleep 0.05; done";

TEST_F(RankProcesses3, ReceiveRankAndRendezvous) {
  EXPECT_EQ(run("echo $TWIDDLE_RANK of $TWIDDLE_RANKS at ${TWIDDLE_PORT:+a port} > $OUT.$TWIDDLE_RANK"), 0);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(written(rank), std::to_string(rank) + " of 3 at a port\n");
  EXPECT_EQ(reported_, "");
}

TEST_F(RankProcesses3, ReturnCodeOfFirstFailure) {
  EXPECT_EQ(run("test $TWIDDLE_RANK = 1 && exit 3; sleep 1; exit 4"), 3);
  EXPECT_EQ(reported_, "");  // the rank has reported it itself
}

TEST_F(RankProcesses3, ReportKilledRank) {
  EXPECT_EQ(run("test $TWIDDLE_RANK = 2 && kill -KILL $$; sleep 1; exit 1"), 128 + SIGKILL);
  EXPECT_NE(reported_.find("rank 2 of 3 (process "), std::string::npos) << reported_;
  EXPECT_NE(reported_.find("was terminated by signal 9, Killed"), std::string::npos) << reported_;
}

// A killed process releases its GPU before its parent is notified, and others may exit in between.
TEST_F(RankProcesses3, ReportKilledRankThatExitsLater) {
  EXPECT_EQ(run("test $TWIDDLE_RANK = 2 && { sleep 1; kill -KILL $$; }; exit 1"), 128 + SIGKILL);
  EXPECT_NE(reported_.find("rank 2 of 3 (process "), std::string::npos) << reported_;
}

TEST_F(RankProcesses3, StopOthersIfOneFails) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(run("test $TWIDDLE_RANK = 0 && exit 2; test $TWIDDLE_RANK = 1 && trap '' TERM; " + waits), 2);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

// Ctrl-Z reaches only the parent, which stops the ranks. When a shell continues the parent, all ranks continue.
TEST_F(RankProcesses3, AreSuspendedTogether) {
  const pid_t parent = fork();
  if (parent == 0) {
    run("echo $$ > $OUT.$TWIDDLE_RANK; until test -e $OUT.end; do sleep 0.05; done");
    _exit(0);
  }
  const auto state_of = [&](int rank) {
    std::ifstream file("/proc/" + std::to_string(std::atoi(written(rank).c_str())) + "/stat");
    std::string number, name, state;
    file >> number >> name >> state;
    return state;
  };
  const auto all_are = [&](bool stopped) {
    for (int rank = 0; rank < 3; ++rank)
      if ((state_of(rank) == "T") != stopped) return false;
    return true;
  };
  while (written(0).empty() || written(1).empty() || written(2).empty()) usleep(10000);
  kill(parent, SIGTSTP);
  int status = 0;
  waitpid(parent, &status, WUNTRACED);
  EXPECT_TRUE(WIFSTOPPED(status));
  while (!all_are(true)) usleep(10000);
  kill(parent, SIGCONT);
  while (!all_are(false)) usleep(10000);
  std::ofstream(folder_ / "rank.end") << "end";
  waitpid(parent, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
}

TEST_F(RankProcesses3, ForwardEachSignalOnce) {
  const pid_t sender = fork();
  if (sender == 0) {
    while (written(0).empty() || written(1).empty() || written(2).empty()) usleep(10000);
    kill(getppid(), SIGUSR1);
    _exit(0);
  }
  EXPECT_EQ(run("trap 'echo received >> $OUT.$TWIDDLE_RANK; exit 130' USR1; echo here > $OUT.$TWIDDLE_RANK; " + waits),
            130);
  waitpid(sender, nullptr, 0);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(written(rank), "here\nreceived\n");
}

}  // namespace
}  // namespace twiddle
