#include "layers/conv/tuner/timing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace twiddle {

TEST(Timing, QuantilesAreSamplesInOrder) {
  const Timing timing{{5, 1, 4, 2, 3}};
  EXPECT_EQ(timing.quantile(0), 1);
  EXPECT_EQ(timing.quantile(0.5), 3);
  EXPECT_EQ(timing.quantile(1), 5);
  EXPECT_DOUBLE_EQ(timing.variation(), std::sqrt(2.5) / 3);
}

TEST(Timing, IsZeroWithoutSamples) {
  EXPECT_EQ(Timing{}.quantile(0.5), 0);
  EXPECT_EQ(Timing{}.variation(), 0);
}

TEST(Timing, SamplesEachCallOnCpu) {
  const auto stream = make_stream(Device{});
  int calls = 0;
  const Timing timing = sample_calls(*stream, 0, [&] { ++calls; });
  EXPECT_EQ(timing.samples.size(), 3u);
  EXPECT_EQ(calls, 3);
}

}  // namespace twiddle
