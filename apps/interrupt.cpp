#include "apps/interrupt.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace twiddle {
namespace {

// A signal handler can reach nothing but static storage.
std::atomic<bool>& requested() {
  static std::atomic<bool> flag = false;
  return flag;
}

// Only a second Ctrl-C is a person in a hurry. A closed terminal and some batch tools send their signal twice.
void on_signal(int number) {
  const bool again = requested().exchange(true);
  if (again && number == SIGINT) _exit(Interrupt::exit_code);
  if (again) return;
  const int interrupted_errno = errno;
  constexpr std::string_view text = "\nstopping after this batch (Ctrl-C again: quit now) ...\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  errno = interrupted_errno;
}

// Code that oneDNN makes for a product (2.6.3, AVX2 and AVX-512) keeps numbers further below its stack pointer than the
// 128 bytes that a signal leaves alone: a handler on the same stack writes over them, and the product then writes to
// wrong places of the heap. One Ctrl-C in a hundred ended so. Room for a signal's frame, with all vector registers.
constexpr std::size_t stack_bytes = std::size_t(64) << 10;

}  // namespace

Interrupt::Interrupt() : stack_(stack_bytes) {
  requested() = false;  // made here, so that the handler never constructs it
  stack_t stack{};
  stack.ss_sp = stack_.data(), stack.ss_size = stack_.size();
  sigaltstack(&stack, &stack_before_);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < signals.size(); ++i) {
    sigaction(signals[i], nullptr, &before_[i]);
    // A shell's background jobs begin with SIGINT ignored, and `kill -INT` is how scripts stop them.
    if (before_[i].sa_handler != SIG_IGN || signals[i] == SIGINT) sigaction(signals[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  sigaltstack(&stack_before_, nullptr);
}

const std::atomic<bool>& Interrupt::stop() const {
  return requested();
}

}  // namespace twiddle
