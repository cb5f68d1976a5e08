#pragma once
#include <array>
#include <atomic>
#include <csignal>
#include <vector>

namespace twiddle {

// While it lives, whatever asks the process to end (Ctrl-C, SIGTERM, a closed terminal, a batch system's SIGUSR1 or
// SIGXCPU) sets stop() and says so on standard error, once. A second Ctrl-C quits at once with code 130. What was
// ignored when the program began stays ignored, as nohup wants it.
// SIGPIPE and SIGXFSZ are ignored from then on: a write that fails says so itself.
// The thread that makes it is to be the process's first, which gets such signals, and gets a stack for them alone.
class Interrupt {
 public:
  static constexpr int exit_code = 130;

  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& stop() const;

 private:
  static constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU};
  std::array<struct sigaction, signals.size()> before_{};
  std::vector<char> stack_;
  stack_t stack_before_{};
};

}  // namespace twiddle
