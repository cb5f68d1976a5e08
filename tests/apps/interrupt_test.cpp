#include "apps/interrupt.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>

#include "framework/error.h"

namespace twiddle {

namespace {

std::atomic<pid_t> receiver = 0;
void note_thread(int) {
  receiver = gettid();
}

// Replaces the handler until the end of scope, since the thread that runs it cannot be observed.
class NotedThread {
 public:
  explicit NotedThread(int number) : number_(number) {
    receiver = 0;
    sigaction(number, nullptr, &before_);
    struct sigaction noting = before_;
    noting.sa_handler = note_thread;
    sigaction(number, &noting, nullptr);
  }
  ~NotedThread() { sigaction(number_, &before_, nullptr); }
  NotedThread(const NotedThread&) = delete;
  NotedThread& operator=(const NotedThread&) = delete;

 private:
  int number_;
  struct sigaction before_ {};
};

void wait_until(const auto& condition) {
  while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Exits with the code of the error that Interrupt throws if there is no memory for a thread's stack.
[[noreturn]] void make_without_memory() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t limit = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (1 << 20);
  const rlimit tight{limit, limit};
  setrlimit(RLIMIT_AS, &tight);
  try {
    const Interrupt interrupt;
  } catch (const Error& error) {
    std::cerr << error.what();
    std::_Exit(static_cast<int>(error.kind()));
  }
  std::_Exit(0);
}

}  // namespace

// A handler on the same stack would overwrite values that library code keeps below its stack pointer.
TEST(Interrupt, HandlesSignalsInIdleThread) {
  const Interrupt interrupt;
  std::atomic<pid_t> worker = 0;
  std::atomic<bool> ended = false;
  std::thread computing([&] {
    worker = gettid();
    while (!ended) {
    }
  });
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU}) {
    const NotedThread noted(signal);
    kill(getpid(), signal);
    wait_until([] { return receiver != 0; });
    EXPECT_NE(receiver, gettid()) << signal;
    EXPECT_NE(receiver, worker) << signal;
  }
  ended = true;
  computing.join();
}

TEST(Interrupt, HandlesTimeLimitInIdleThread) {
  const Interrupt interrupt;
  const NotedThread noted(SIGXCPU);
  std::atomic<pid_t> worker = 0;
  std::thread computing([&] {
    worker = gettid();
    while (receiver == 0) {
    }
  });
  rlimit before{};
  getrlimit(RLIMIT_CPU, &before);
  rlimit soon = before;
  soon.rlim_cur = static_cast<rlim_t>(std::clock() / CLOCKS_PER_SEC) + 1;
  setrlimit(RLIMIT_CPU, &soon);
  computing.join();
  setrlimit(RLIMIT_CPU, &before);
  EXPECT_NE(receiver, worker);
  EXPECT_NE(receiver, gettid());
}

TEST(Interrupt, SignalRequestsStop) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.stop());
  kill(getpid(), SIGTERM);
  wait_until([&] { return interrupt.stop().load(); });
}

TEST(Interrupt, FailsIfThreadCannotStart) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "it limits the address space";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, which cannot reuse the stack of an earlier thread
  EXPECT_EXIT(make_without_memory(), testing::ExitedWithCode(4), "cannot start a thread that waits for signals: ");
}

TEST(Interrupt, RestoresSignalHandlers) {
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  struct sigaction action_before {
  }, action_after{};
  sigaction(SIGTERM, nullptr, &action_before);
  { const Interrupt interrupt; }
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  sigaction(SIGTERM, nullptr, &action_after);
  EXPECT_EQ(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
  EXPECT_EQ(action_before.sa_handler, action_after.sa_handler);
}

}  // namespace twiddle
