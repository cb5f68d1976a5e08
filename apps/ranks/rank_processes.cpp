#include "apps/ranks/rank_processes.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "apps/failure.h"
#include "framework/device.h"
#include "framework/error.h"
#include "framework/ranks/launch.h"
#include "framework/ranks/socket.h"

namespace twiddle {

namespace {

// After the first failure: time for last messages before SIGTERM, then time before SIGKILL, for ranks that hang.
constexpr double seconds_to_end = 10, seconds_after_sigterm = 5;

constexpr int handed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU};
constexpr int suspends = SIGTSTP;  // Ctrl-Z

sigset_t awaited_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGCHLD);
  sigaddset(&signals, suspends);
  for (const int number : handed_on) sigaddset(&signals, number);
  return signals;
}

// Blocks these signals while it lives, so that they are received only by next_within(). Otherwise a signal between a
// check and a wait would be lost.
class HeldSignals {
 public:
  HeldSignals() : signals_(awaited_signals()) { sigprocmask(SIG_BLOCK, &signals_, &before_); }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  void let_go_in_child() const { sigprocmask(SIG_UNBLOCK, &signals_, nullptr); }
  int next_within(double seconds) const {  // 0: no signal in time
    timespec time{static_cast<time_t>(seconds), static_cast<long>(1e9 * (seconds - static_cast<time_t>(seconds)))};
    return std::max(sigtimedwait(&signals_, nullptr, &time), 0);
  }

 private:
  sigset_t signals_, before_{};
};

struct Rank {
  int number;
  pid_t process;
  bool ended = false;
  int status = 0;

  bool was_killed() const { return WIFSIGNALED(status); }
  bool failed() const { return ended && status != 0; }
  int code() const { return was_killed() ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }
};

// Starts the process in a separate process group. Ctrl-C in a terminal then reaches only this process, which forwards
// it once.
pid_t start(const std::string& program, const std::vector<char*>& arguments, int rank, int count, int port,
            const std::string& token, const HeldSignals& held) {
  const auto variables = variables_of_rank(rank, count, port, token);
  const pid_t parent = getpid(), process = fork();
  if (process < 0) throw Error(fmt::format("no process could be started for rank {}: {}", rank, std::strerror(errno)));
  if (process > 0) return process;
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // stops the rank if this process dies
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  held.let_go_in_child();
  execv(program.c_str(), arguments.data());
  print_error(fmt::format("{} cannot be started: {}", program, std::strerror(errno)));
  _exit(127);
}

class RankProcesses {
 public:
  // `arguments`: begins with the program's name and ends with null.
  RankProcesses(const std::string& program, const std::vector<char*>& arguments, int count) {
    const int port = free_port();
    const std::string token = random_token();
    for (int rank = 0; rank < count; ++rank)
      ranks_.push_back({rank, start(program, arguments, rank, count, port, token, held_)});
  }

  int wait() {
    while (!all_ended()) {
      const int number = held_.next_within(0.2);
      if (number == suspends)
        suspend();
      else if (number != 0 && number != SIGCHLD)
        signal_all(number);
      look();
      if (first_ != nullptr) hurry();
    }
    if (first_ == nullptr) return 0;
    if (first_->was_killed())
      print_error(fmt::format(
          "rank {} of {} (process {}) was terminated by signal {}, {}; the other ranks were stopped", first_->number,
          ranks_.size(), first_->process, WTERMSIG(first_->status), strsignal(WTERMSIG(first_->status))));
    return first_->code();
  }

 private:
  bool all_ended() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.ended; });
  }

  void signal_all(int number) {
    for (const Rank& rank : ranks_)
      if (!rank.ended) kill(rank.process, number);
  }

  // Suspends all ranks together until the shell resumes this process.
  void suspend() {
    signal_all(SIGSTOP);
    raise(SIGSTOP);
    signal_all(SIGCONT);
  }

  // Finds the rank that caused the failure. A killed rank is the cause, even if another rank's exit is seen first: a
  // process takes a few hundred milliseconds to release a GPU. A rank that this process killed is not the cause.
  void look() {
    std::vector<Rank*> failed;
    for (Rank& rank : ranks_) {
      if (rank.ended || waitpid(rank.process, &rank.status, WNOHANG) != rank.process) continue;
      rank.ended = true;
      if (rank.failed()) failed.push_back(&rank);
    }
    if (failed.empty()) return;
    const auto killed = std::find_if(failed.begin(), failed.end(), [](const Rank* rank) { return rank->was_killed(); });
    const bool one_was_killed = killed != failed.end() && !stop_requested_;
    if (first_ == nullptr)
      failed_at_ = Clock::now();
    else if (first_->was_killed() || !one_was_killed)
      return;
    first_ = one_was_killed ? *killed : failed.front();
  }

  void hurry() {
    const double seconds = std::chrono::duration<double>(Clock::now() - failed_at_).count();
    if (seconds > seconds_to_end + seconds_after_sigterm)
      signal_all(SIGKILL);
    else if (seconds > seconds_to_end && !std::exchange(stop_requested_, true))
      signal_all(SIGTERM);
  }

  using Clock = std::chrono::steady_clock;
  HeldSignals held_;
  std::vector<Rank> ranks_;
  const Rank* first_ = nullptr;  // the rank that caused the failure; null: none failed
  Clock::time_point failed_at_;
  bool stop_requested_ = false;
};

std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  require(!words.empty(), "/proc/self/cmdline cannot be read, and without it no other process can be started");
  return words;
}

}  // namespace

int run_rank_processes(const std::string& program, const std::vector<std::string>& arguments, int count) {
  std::vector<char*> words;
  for (const std::string& word : arguments) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return RankProcesses(program, words, count).wait();
}

int run_on_gpus(int count) {
  const Launch launch = own_launch();
  if (launch.size > 1)
    throw Error(ErrorKind::config, fmt::format("{} has started {} processes: leave --gpus out, and each takes a GPU",
                                               launch.launcher, launch.size));
  const HeldSignals held;  // before CUDA starts its threads, which inherit the blocked signals
  const int gpus = cuda_device_count();
  if (count > gpus)
    throw Error(ErrorKind::config, fmt::format("--gpus {}: this machine has {} GPU{} that this build can use ('twiddle "
                                               "devices' lists them)",
                                               count, gpus, gpus == 1 ? "" : "s"));
  return run_rank_processes(std::filesystem::read_symlink("/proc/self/exe").string(), own_arguments(), count);
}

bool is_started_rank() {
  return own_launch().launcher == "--gpus";
}

}  // namespace twiddle
