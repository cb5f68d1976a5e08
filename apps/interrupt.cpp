#include "apps/interrupt.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

#include "framework/error.h"

namespace twiddle {
namespace {

// A signal handler can reach nothing but static storage.
std::atomic<bool>& requested() {
  static std::atomic<bool> flag = false;
  return flag;
}

// Libraries may take a signal as they are loaded, before main(): UCX, which Open MPI 5 uses, takes SIGHUP. So this runs
// before their constructors.
bool hangup_was_ignored = false;
void note_hangup(int, char**, char**) {
  struct sigaction action {};
  hangup_was_ignored = sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}
[[gnu::section(".preinit_array"), gnu::used]] void (*const noted)(int, char**, char**) = note_hangup;

// Only a second Ctrl-C is a person in a hurry. A closed terminal and some batch tools send their signal twice.
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

// Code that oneDNN makes for a product (2.6.3, AVX2 and AVX-512) keeps numbers further below its stack pointer than the
// 128 bytes that a signal leaves alone: a handler on the same stack writes over them, and the product then writes to
// wrong places of the heap. One Ctrl-C in a hundred ended so. The first thread is not the only one that computes, nor
// the only one to be given signals: SIGXCPU of a limit of time comes to whichever thread runs at that moment, and
// OpenMP starts new threads whenever a team grows again, so that a stack for signals of each thread's own would not do.
Interrupt::Interrupt() {
  requested() = false;  // made here, so that the handler never constructs it
  sigset_t mask;
  sigemptyset(&mask);
  for (const int number : signals) sigaddset(&mask, number);
  try {
    receiver_ = std::thread([this, mask] {
      pthread_sigmask(SIG_UNBLOCK, &mask, nullptr);  // whoever started the program may have had them blocked
      ended_.wait();
    });
  } catch (const std::system_error& error) {
    throw Error(ErrorKind::device, join("cannot start a thread that waits for signals: ", error.what(),
                                        "; a limit of processes or memory (ulimit -u, -v) leaves no room for it"));
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
    // A shell's background jobs begin with SIGINT ignored, and `kill -INT` is how scripts stop them.
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
