#include "framework/cuda/host_wait.h"

#include <gtest/gtest.h>

#include <thread>

namespace twiddle {
namespace {

TEST(HostWait, CountsOverlappingWaitsOnce) {
  HostWait wait;
  EXPECT_EQ(wait.seconds(), 0);
  {
    const HostWait::Span first(wait);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    {
      const HostWait::Span second(wait);
      EXPECT_GE(wait.seconds(), 0.02);
    }
    EXPECT_GE(wait.seconds(), 0.02);
  }
  EXPECT_EQ(wait.seconds(), 0);
}

}  // namespace
}  // namespace twiddle
