#include "framework/ranks/rank_monitor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace twiddle {
namespace {

// Ranks as processes, which the monitor may stop. Each runs `work` and exits with its result.
class MonitoredRanks : public testing::Test {
 protected:
  void start(int size, double silence, const std::function<int(int rank, RankMonitor& monitor)>& work) {
    const int port = free_port();
    for (int rank = 0; rank < size; ++rank) {
      const pid_t process = fork();
      if (process > 0) processes_.push_back(process);
      if (process != 0) continue;
      int code = 1;
      {
        RankMonitor monitor(rank, std::move(connect_ranks({rank, size, rank, "a test", {"127.0.0.1", port}}, 60).life),
                            silence);
        monitor.when_lost([rank, &monitor](const std::string& who) {
          if (who == "rank 1 disconnected unexpectedly" && rank == 0) std::_Exit(77);
          if (who.starts_with("no heartbeat from rank 1 for") && rank == 0) std::_Exit(78);
          if (who.find("set train.collective_timeout above 45") != std::string::npos && rank == 0) monitor.end_all(79);
        });
        code = work(rank, monitor);
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

  static int waits_forever() {
    pause();
    return 0;
  }

 private:
  std::vector<pid_t> processes_;
};

TEST_F(MonitoredRanks, MayExitAtDifferentTimes) {
  start(3, 30, [](int rank, RankMonitor&) {
    usleep(rank == 1 ? 1000 : 600000);
    return 10 + rank;
  });
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), 10 + static_cast<int>(rank));
}

TEST_F(MonitoredRanks, ExitIfOneIsKilled) {
  start(3, 30, [](int rank, RankMonitor&) {
    usleep(100000);  // by then rank 0 listens
    if (rank == 1) std::raise(SIGKILL);
    return waits_forever();
  });
  EXPECT_EQ(end_of(1), 128 + SIGKILL);
  EXPECT_EQ(end_of(0), 77);
  EXPECT_EQ(end_of(2), 1);
}

TEST_F(MonitoredRanks, ExitIfFirstIsKilled) {
  start(3, 30, [](int rank, RankMonitor&) {
    if (rank == 0) std::raise(SIGKILL);
    return waits_forever();
  });
  EXPECT_EQ(end_of(0), 128 + SIGKILL);
  EXPECT_EQ(end_of(1), 1);
  EXPECT_EQ(end_of(2), 1);
}

TEST_F(MonitoredRanks, ExitIfOneIsSuspended) {
  start(2, 3, [](int rank, RankMonitor&) {
    if (rank == 1) std::raise(SIGSTOP);
    return waits_forever();
  });
  EXPECT_EQ(end_of(0), 78);
  kill(process(1), SIGKILL);
  EXPECT_EQ(end_of(1), 128 + SIGKILL);
}

// As on a busy host: the additional check delays the thread by more than a second each time.
TEST_F(MonitoredRanks, DetectSuspendedRankEvenIfLate) {
  start(2, 3, [](int rank, RankMonitor& monitor) {
    if (rank == 1) std::raise(SIGSTOP);
    monitor.add_check([] {
      usleep(1200000);
      return std::string();
    });
    alarm(30);
    return waits_forever();
  });
  EXPECT_EQ(end_of(0), 78);
  kill(process(1), SIGKILL);
  EXPECT_EQ(end_of(1), 128 + SIGKILL);
}

// Suspended for longer than the heartbeat limit, and not resumed at the same time.
TEST_F(MonitoredRanks, ContinueAfterAllWereSuspended) {
  start(2, 3, [](int rank, RankMonitor&) {
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

TEST_F(MonitoredRanks, ExitWithCodeOfFailedRank) {
  start(3, 30, [](int rank, RankMonitor& monitor) {
    if (rank == 2) monitor.end_all(5);
    return waits_forever();
  });
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), 5);
}

TEST_F(MonitoredRanks, ExitIfAllWaitTooLong) {
  start(3, 30, [](int /*rank*/, RankMonitor& monitor) {
    monitor.monitor_waits([] { return 46.0; }, 45);
    return waits_forever();
  });
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), 79);
}

TEST_F(MonitoredRanks, WaitForDevicesWithoutLimit) {
  start(2, 30, [](int rank, RankMonitor& monitor) {
    monitor.monitor_waits([] { return 1e6; }, 0);
    usleep(3000000);
    return 10 + rank;
  });
  for (std::size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(end_of(rank), 10 + static_cast<int>(rank));
}

// One rank computes or reads for a long time while the others wait for it.
TEST_F(MonitoredRanks, ContinueIfOneIsBusy) {
  start(3, 30, [](int rank, RankMonitor& monitor) {
    monitor.monitor_waits([rank] { return rank == 1 ? 0.0 : 46.0; }, 45);
    usleep(3000000);
    return 10 + rank;
  });
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(end_of(rank), 10 + static_cast<int>(rank));
}

TEST_F(MonitoredRanks, ExitIfAdditionalCheckFails) {
  start(2, 30, [](int rank, RankMonitor& monitor) {
    if (rank == 1) monitor.add_check([] { return "the network is lost"; });
    return waits_forever();
  });
  EXPECT_EQ(end_of(1), 1);
  EXPECT_EQ(end_of(0), 1);
}

}  // namespace
}  // namespace twiddle
