#pragma once
#include <atomic>

namespace twiddle {

// While it lives, the first SIGINT or SIGTERM sets stop() and says so on standard error; the second quits at once with
// code 130.
class Interrupt {
 public:
  static constexpr int exit_code = 130;

  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  const std::atomic<bool>& stop() const;
};

}  // namespace twiddle
