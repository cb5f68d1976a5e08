#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/apps/run_program.h"

namespace twiddle {
namespace {

// What the OpenMP runtime tells of its settings, of the program that was called and of any that it starts anew.
std::string thread_settings() {
  setenv("OMP_DISPLAY_ENV", "verbose", 1);
  const std::string told = run_program({"devices"}).err;
  unsetenv("OMP_DISPLAY_ENV");  // other tests of this process start programs, too
  return told;
}

TEST(Threads, GiveTheirCoreAwaySoonUnlessTheUserSaysOtherwise) {
  unsetenv("GOMP_SPINCOUNT");
  unsetenv("OMP_WAIT_POLICY");
  const std::string by_itself = thread_settings();
  EXPECT_NE(by_itself.find("GOMP_SPINCOUNT = '10000'"), std::string::npos) << by_itself;

  setenv("OMP_WAIT_POLICY", "passive", 1);
  const std::string passive = thread_settings();
  EXPECT_EQ(passive.find("GOMP_SPINCOUNT = '10000'"), std::string::npos) << passive;
  unsetenv("OMP_WAIT_POLICY");
}

}  // namespace
}  // namespace twiddle
