#pragma once
#include <array>
#include <atomic>
#include <csignal>
#include <latch>
#include <thread>

namespace twiddle {

// While it lives, a request to stop (Ctrl-C, SIGTERM, a closed terminal, a batch system's SIGUSR1 or SIGXCPU) sets
// stop() and prints one message to standard error. A second Ctrl-C exits at once with code 130. Signals that were
// ignored at program start stay ignored, as nohup requires.
// SIGPIPE and SIGXFSZ are ignored from then on: a failed write returns an error instead.
// A separate thread receives these signals, because compute threads must not. The constructor blocks them in the
// calling thread and in all threads that it starts later. Threads started earlier may still receive them: they join
// ranks and compute nothing.
class Interrupt {
 public:
  static constexpr int exit_code = 130;

  Interrupt();  // throws an Error of kind device if the thread cannot be started
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& stop() const;

 private:
  static constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU};
  std::array<struct sigaction, signals.size()> before_{};
  sigset_t mask_before_{};
  std::latch ended_{1};
  std::thread receiver_;
};

}  // namespace twiddle
