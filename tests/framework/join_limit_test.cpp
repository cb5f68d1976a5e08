#include "framework/ranks/join_limit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace twiddle {
namespace {

// One rank of two, as mpirun would start it. It sleeps, and is killed with its owner.
class SleepingRank {
 public:
  explicit SleepingRank(const std::string& token) {
    const std::string job = "PMIX_NAMESPACE=" + token;
    const char* const environment[] = {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", job.c_str(), nullptr};
    process_ = fork();
    if (process_ != 0) return;
    execle("/bin/sleep", "sleep", "600", nullptr, environment);
    std::_Exit(1);
  }
  ~SleepingRank() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  SleepingRank(const SleepingRank&) = delete;
  SleepingRank& operator=(const SleepingRank&) = delete;

  // Waits until it runs the other program, with its own variables.
  void stop() const {
    while (stopped_ranks_here(launch()).empty()) {
      kill(process_, SIGCONT);
      usleep(20000);
      kill(process_, SIGSTOP);
      usleep(20000);
    }
  }
  std::string name() const { return "rank 1 (process " + std::to_string(process_) + ")"; }
  static std::string own_token() { return "a test's, of process " + std::to_string(getpid()); }
  static Launch launch() { return {0, 2, 0, "mpirun", {}, own_token() + '/'}; }

 private:
  pid_t process_ = 0;
};

TEST(StoppedRanks, AreNamedInMessage) {
  EXPECT_EQ(stopped_ranks_here(SleepingRank::launch()), "");
  const SleepingRank rank(SleepingRank::own_token());
  EXPECT_EQ(stopped_ranks_here(SleepingRank::launch()), "") << "it runs";
  rank.stop();
  EXPECT_EQ(stopped_ranks_here(SleepingRank::launch()), rank.name() + " is stopped");
  Launch other = SleepingRank::launch();
  other.token = "another job's";
  EXPECT_EQ(stopped_ranks_here(other), "");
}

int exit_code_of(const std::function<void()>& work) {
  const pid_t process = fork();
  if (process == 0) {
    work();
    std::_Exit(0);
  }
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(JoinLimit, EndsProcessAndNamesStoppedRank) {
  const SleepingRank rank(SleepingRank::own_token());
  rank.stop();
  const Launch launch = SleepingRank::launch();  // of this process: a child has another number
  const auto start = [&](const std::string& expected) {
    const JoinLimit limit(launch, 0.2, [&](const std::string& message) {
      if (message.find(expected) == std::string::npos) std::_Exit(1);
    });
    pause();
  };
  EXPECT_EQ(exit_code_of([&] { start("2 ranks have not joined within 0.2 s: on "); }), 4);
  EXPECT_EQ(exit_code_of([&] { start(rank.name() + " is stopped"); }), 4);
}

TEST(JoinLimit, EndsNothingIfRanksJoin) {
  EXPECT_EQ(exit_code_of([] { const JoinLimit limit(SleepingRank::launch(), 60, [](const std::string&) {}); }), 0);
}

}  // namespace
}  // namespace twiddle
