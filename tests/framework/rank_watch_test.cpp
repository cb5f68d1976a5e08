#include "framework/ranks/rank_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace twiddle {
namespace {

// Ranks as processes, which the watch may stop. Each runs `work` and exits with its result.
class WatchedRanks : public testing::Test {
 protected:
  void start(int size, double silence, const std::function<int(int rank, RankWatch& watch)>& work) {
    const int port = free_port();
    for (int rank = 0; rank < size; ++rank) {
      const pid_t process = fork();
      if (process > 0) processes_.push_back(process);
      if (process != 0) continue;
      int code = 1;
      {
        RankWatch watch(rank, std::move(connect_ranks({rank, size, rank, "a test", {"127.0.0.1", port}}, 60).life),
                        silence);
        watch.when_lost([rank, &watch](const std::string& who) {
          if (who == "rank 1 disconnected unexpectedly" && rank == 0) std::_Exit(77);
          if (who.starts_with("no heartbeat from rank 1 for") && rank == 0) std::_Exit(78);
          if (who.find("set train.collective_timeout above 45") != std::string::npos && rank == 0) watch.end_all(79);
        });
        code = work(rank, watch);
      }
      std::_Exit(code);
    }
  }
  int end_of(std::size_t rank) {
    int status = 0;
    waitpid(processes_[rank], &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t process(std::size_t rank) const { return processes_[rank]; }

  static int waits_for_ever() {
    pause();
    return 0;
  }

 private:
  std::vector<pid_t> processes_;
};

TEST_F(WatchedRanks, MayExitAtDifferentTimes) {
  start(3, 30, [](int rank, RankWatch&) {
    usleep(rank == 1 ? 1000 : 600000);
    return 10 + rank;
  });
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), 10 + static_cast<int>(rank));
}

TEST_F(WatchedRanks, ExitIfOneIsKilled) {
  start(3, 30, [](int rank, RankWatch&) {
    usleep(100000);  // by then rank 0 listens
    if (rank == 1) std::raise(SIGKILL);
    return waits_for_ever();
  });
  EXPECT_EQ(end_of(1), 128 + SIGKILL);
  EXPECT_EQ(end_of(0), 77);
  EXPECT_EQ(end_of(2), 1);
}

TEST_F(WatchedRanks, ExitIfFirstIsKilled) {
  start(3, 30, [](int rank, RankWatch&) {
    if (rank == 0) std::raise(SIGKILL);
    return waits_for_ever();
  });
  EXPECT_EQ(end_of(0), 128 + SIGKILL);
  EXPECT_EQ(end_of(1), 1);
  EXPECT_EQ(end_of(2), 1);
}

TEST_F(WatchedRanks, ExitIfOneIsSuspended) {
  start(2, 3, [](int rank, RankWatch&) {
    if (rank == 1) std::raise(SIGSTOP);
    return waits_for_ever();
  });
  EXPECT_EQ(end_of(0), 78);
  kill(process(1), SIGKILL);
  EXPECT_EQ(end_of(1), 128 + SIGKILL);
}

// As on a busy host: the additional check delays the thread by more than a second each time.
TEST_F(WatchedRanks, DetectSuspendedRankEvenIfLate) {
  start(2, 3, [](int rank, RankWatch& watch) {
    if (rank == 1) std::raise(SIGSTOP);
    watch.also_ask([] {
      usleep(1200000);
      return std::string();
    });
    alarm(30);
    return waits_for_ever();
  });
  EXPECT_EQ(end_of(0), 78);
  kill(process(1), SIGKILL);
  EXPECT_EQ(end_of(1), 128 + SIGKILL);
}

// Suspended for longer than the heartbeat limit, and not resumed at the same time.
TEST_F(WatchedRanks, ContinueAfterAllWereSuspended) {
  start(2, 3, [](int rank, RankWatch&) {
    usleep(6000000);
    return 10 + rank;
  });
  usleep(1000000);
  for (std::size_t rank = 0; rank < 2; ++rank) kill(process(rank), SIGSTOP);
  usleep(4000000);
  kill(process(0), SIGCONT);
  usleep(700000);
  kill(process(1), SIGCONT);
  for (std::size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(end_of(rank), 10 + static_cast<int>(rank));
}

TEST_F(WatchedRanks, ExitWithCodeOfFailedRank) {
  start(3, 30, [](int rank, RankWatch& watch) {
    if (rank == 2) watch.end_all(5);
    return waits_for_ever();
  });
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), 5);
}

TEST_F(WatchedRanks, ExitIfAllWaitTooLong) {
  start(3, 30, [](int /*rank*/, RankWatch& watch) {
    watch.watch_waits([] { return 46.0; }, 45);
    return waits_for_ever();
  });
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), 79);
}

TEST_F(WatchedRanks, WaitForDevicesWithoutLimit) {
  start(2, 30, [](int rank, RankWatch& watch) {
    watch.watch_waits([] { return 1e6; }, 0);
    usleep(3000000);
    return 10 + rank;
  });
  for (std::size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(end_of(rank), 10 + static_cast<int>(rank));
}

// One rank computes or reads for a long time while the others wait for it.
TEST_F(WatchedRanks, ContinueIfOneIsBusy) {
  start(3, 30, [](int rank, RankWatch& watch) {
    watch.watch_waits([rank] { return rank == 1 ? 0.0 : 46.0; }, 45);
    usleep(3000000);
    return 10 + rank;
  });
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), 10 + static_cast<int>(rank));
}

TEST_F(WatchedRanks, ExitIfAdditionalCheckFails) {
  start(2, 30, [](int rank, RankWatch& watch) {
    if (rank == 1) watch.also_ask([] { return "the network is lost"; });
    return waits_for_ever();
  });
  EXPECT_EQ(end_of(1), 1);
  EXPECT_EQ(end_of(0), 1);
}

}  // namespace
}  // namespace twiddle
