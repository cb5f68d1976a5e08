#include "apps/interrupt.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "framework/error.h"

namespace twiddle {
namespace {

// Static, because a signal handler can reach nothing else.
std::atomic<bool>& requested() {
  static std::atomic<bool> flag = false;
  return flag;
}

// Libraries may install signal handlers when they are loaded, before main(): UCX, which Open MPI 5 uses, handles
// SIGHUP. This function runs before their constructors.
bool hangup_was_ignored = false;
void note_hangup(int, char**, char**) {
  struct sigaction action {};
  hangup_was_ignored = sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const noted)(int, char**, char**) = note_hangup;

// Only a second Ctrl-C quits at once. A closed terminal and some batch tools send their signal twice.
void on_signal(int number) {
  const bool again = requested().exchange(true);
  if (again && number == SIGINT) _exit(Interrupt::exit_code);
  if (again) return;
  const int interrupted_errno = errno;
  constexpr std::string_view text = "\nstopping (Ctrl-C again: quit now) ...\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
  errno = interrupted_errno;
}

}  // namespace

// Signals are handled on a separate thread because of code that oneDNN generates for matrix products (2.6.3, AVX2 and
// AVX-512). That code stores values below its stack pointer, beyond the 128 bytes that a signal preserves. A handler on
// the same stack overwrites them, and the product then corrupts the heap. About one Ctrl-C in a hundred crashed the
// program this way.
// A separate signal stack per thread is not enough. All compute threads can receive signals: SIGXCPU from a time limit
// goes to the thread that is running. OpenMP starts new threads whenever a team grows.
Interrupt::Interrupt() {
  requested() = false;  // initializes the static flag, so that the handler never constructs it
  sigset_t mask;
  sigemptyset(&mask);
  for (const int number : signals) sigaddset(&mask, number);
  try {
    receiver_ = std::thread([this, mask] {
      pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);  // the parent process may have blocked them
      ended_.wait();
    });
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::device, join("cannot start a thread that waits for signals: ", error.what(),
                                        "; a limit of processes or memory (ulimit -u, -v) may be too low"));
  }
  pthread_sigmask(SIG_BLOCK, &mask, &mask_before_);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < signals.size(); ++i) {
    sigaction(signals[i], nullptr, &before_[i]);
    if (signals[i] == SIGHUP && hangup_was_ignored) {
      std::signal(SIGHUP, SIG_IGN);
      continue;
    }
    // A shell starts background jobs with SIGINT ignored, and scripts stop them with `kill -INT`.
    if (before_[i].sa_handler != SIG_IGN || signals[i] == SIGINT) sigaction(signals[i], &action, nullptr);
  }
}

Interrupt::~Interrupt() {
  ended_.count_down();
  receiver_.join();
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

const std::atomic<bool>& Interrupt::stop() const {
  return requested();
}

}  // namespace twiddle
