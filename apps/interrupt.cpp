#include "apps/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <string_view>

namespace twiddle {
namespace {

// A signal handler can reach nothing but static storage.
std::atomic<bool>& requested() {
  static std::atomic<bool> flag = false;
  return flag;
}

void on_signal(int) {
  if (requested().exchange(true)) _exit(Interrupt::exit_code);
  constexpr std::string_view text = "\nstopping after this batch (Ctrl-C again: quit now) ...\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  requested() = false;  // made here, so that the handler never constructs it
  handle(on_signal);
}

Interrupt::~Interrupt() {
  handle(SIG_DFL);
}

const std::atomic<bool>& Interrupt::stop() const {
  return requested();
}

}  // namespace twiddle
