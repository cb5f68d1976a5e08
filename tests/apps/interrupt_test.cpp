#include "apps/interrupt.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace twiddle {

namespace {

std::uintptr_t address_seen = 0;
void note_stack(int) {
  const char here = 0;
  address_seen = reinterpret_cast<std::uintptr_t>(&here);
}

bool lies_in(std::uintptr_t address, const stack_t& stack) {
  const auto begin = reinterpret_cast<std::uintptr_t>(stack.ss_sp);
  return address >= begin && address < begin + stack.ss_size;
}

}  // namespace

// Below the stack pointer of a library's code lie numbers that a handler on the same stack would write over.
TEST(Interrupt, HandlesSignalsOnAStackOfTheirOwn) {
  stack_t before{}, during{}, after{};
  sigaltstack(nullptr, &before);
  {
    const Interrupt interrupt;
    sigaltstack(nullptr, &during);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGXCPU}) {
      struct sigaction action {};
      sigaction(signal, nullptr, &action);
      EXPECT_TRUE(action.sa_handler == SIG_IGN || (action.sa_flags & SA_ONSTACK) != 0) << signal;
    }
    struct sigaction own {
    }, replaced{};
    sigaction(SIGUSR1, nullptr, &replaced);
    own = replaced;
    own.sa_handler = note_stack;  // in place of the handler, whose frame cannot be seen
    sigaction(SIGUSR1, &own, nullptr);
    raise(SIGUSR1);
    sigaction(SIGUSR1, &replaced, nullptr);
    EXPECT_TRUE(lies_in(address_seen, during));
  }
  sigaltstack(nullptr, &after);
  EXPECT_EQ(after.ss_flags, before.ss_flags);
}

TEST(Interrupt, ASignalAsksForTheEnd) {
  const Interrupt interrupt;
  EXPECT_FALSE(interrupt.stop());
  raise(SIGTERM);
  EXPECT_TRUE(interrupt.stop());
}

}  // namespace twiddle
