#pragma once
#include <array>
#include <atomic>
#include <csignal>
#include <latch>
#include <thread>

namespace twiddle {

// While it lives, whatever asks the process to end (Ctrl-C, SIGTERM, a closed terminal, a batch system's SIGUSR1 or
// SIGXCPU) sets stop() and says so on standard error, once. A second Ctrl-C quits at once with code 130. What was
// ignored when the program began stays ignored, as nohup wants it.
// SIGPIPE and SIGXFSZ are ignored from then on: a write that fails says so itself.
// Such signals come to a thread of their own, for a thread that computes must not be given any: the one that makes this
// hears none of them from then on, and neither do those that it starts. Threads that it started before, as they join
// ranks and compute nothing, may.
class Interrupt {
 public:
  static constexpr int exit_code = 130;

  Interrupt();  // throws an Error of kind device where that thread cannot be started
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
