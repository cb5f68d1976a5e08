#include "framework/cpu/thread_settings.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace twiddle {
namespace {

using Settings = std::vector<ThreadSetting>;

class ThreadSettings : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* const name : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS"}) unsetenv(name);
  }
};

TEST_F(ThreadSettings, LimitSpinningOfWaitingThreads) {
  EXPECT_EQ(missing_thread_settings({}, 8), (Settings{{"GOMP_SPINCOUNT", "10000"}}));
}

TEST_F(ThreadSettings, RespectUserSettings) {
  setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_EQ(missing_thread_settings({}, 8), Settings{});
  unsetenv("OMP_WAIT_POLICY");
  setenv("GOMP_SPINCOUNT", "0", 1);
  setenv("OMP_NUM_THREADS", "8", 1);
  EXPECT_EQ(missing_thread_settings(1.0, 8), Settings{});
}

TEST_F(ThreadSettings, RespectCpuQuota) {
  setenv("GOMP_SPINCOUNT", "0", 1);
  EXPECT_EQ(missing_thread_settings(1.0, 8), (Settings{{"OMP_NUM_THREADS", "1"}}));
  EXPECT_EQ(missing_thread_settings(0.2, 8), (Settings{{"OMP_NUM_THREADS", "1"}}));
  EXPECT_EQ(missing_thread_settings(1.5, 8), (Settings{{"OMP_NUM_THREADS", "2"}}));
  EXPECT_EQ(missing_thread_settings(8.0, 8), Settings{});
  EXPECT_EQ(missing_thread_settings(64.0, 8), Settings{});
}

}  // namespace
}  // namespace twiddle
