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
  int reported = 0;
  Measuring measuring([&](const std::string&) { ++reported; });
  for (int benchmark = 0; benchmark < 3; ++benchmark) {
    measuring.begin("a short one");
    measuring.between_two();
    measuring.end();
  }
  EXPECT_EQ(reported, 0);
}

TEST(Measuring, ReportsProgressIfSlow) {
  std::vector<std::string> reported;
  Measuring measuring([&](const std::string& text) { reported.push_back(text); });
  measuring.expect(4);
  measuring.begin("the first");
  wait(1050);
  measuring.between_two();
  measuring.end();
  wait(1000);  // outside a benchmark: not counted
  measuring.begin("the second");
  wait(1050);
  for (int i = 0; i < 5; ++i) measuring.between_two();
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_TRUE(reported[0].starts_with("measuring convolution engines: 2 s so far, about 2 s to go, at the second"))
      << reported[0];
}

TEST(Measuring, OmitsTotalIfUnknown) {
  std::vector<std::string> reported;
  Measuring measuring([&](const std::string& text) { reported.push_back(text); });
  measuring.begin("a long one");
  wait(2050);
  measuring.between_two();
  EXPECT_EQ(reported, std::vector<std::string>{"measuring convolution engines: 2 s so far, at a long one"});
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
