#include "layers/conv/tuner/measuring.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "framework/interrupted.h"

namespace twiddle {
namespace {

void wait(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Measuring, IsQuietWhileItIsShort) {
  int told = 0;
  Measuring measuring([&](const std::string&) { ++told; });
  for (int benchmark = 0; benchmark < 3; ++benchmark) {
    measuring.begin("a short one");
    measuring.between_two();
    measuring.end();
  }
  EXPECT_EQ(told, 0);
}

TEST(Measuring, ReportsProgressIfSlow) {
  std::vector<std::string> told;
  Measuring measuring([&](const std::string& text) { told.push_back(text); });
  measuring.expect(4);
  measuring.begin("the first");
  wait(1050);
  measuring.between_two();
  measuring.end();
  wait(1000);  // outside a benchmark: not counted
  measuring.begin("the second");
  wait(1050);
  for (int i = 0; i < 5; ++i) measuring.between_two();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].starts_with("measuring convolution engines: 2 s so far, about 2 s to go, at the second"))
      << told[0];
}

TEST(Measuring, OmitsTotalIfUnknown) {
  std::vector<std::string> told;
  Measuring measuring([&](const std::string& text) { told.push_back(text); });
  measuring.begin("a long one");
  wait(2050);
  measuring.between_two();
  EXPECT_EQ(told, std::vector<std::string>{"measuring convolution engines: 2 s so far, at a long one"});
}

TEST(Measuring, StopsBetweenTwo) {
  bool stop = false;
  Measuring measuring(nullptr, [&] { return stop; });
  measuring.begin("any");
  EXPECT_NO_THROW(measuring.between_two());
  stop = true;
  EXPECT_THROW(measuring.between_two(), Interrupted);
}

}  // namespace
}  // namespace twiddle
