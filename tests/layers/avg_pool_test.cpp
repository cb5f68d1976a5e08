#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, AvgPoolTakesTheMean) {
  EXPECT_EQ(run_layer(GetParam(), "avg_pool", {{"kernel", "2"}}, {1, 1, 2, 4}, {1, 5, -3, -1, 4, 2, -2, -4}),
            (std::vector<float>{3, -2.5f}));
}

TEST_P(EveryDevice, AvgPoolCountsPaddingUnlessToldOtherwise) {
  const LayerOptions window{{"kernel", "2"}, {"stride", "2"}, {"pad", "1"}};
  expect_close(run_layer(GetParam(), "avg_pool", window, {1, 1, 2, 2}, {4, 8, 12, 16}), {1, 2, 3, 4});
  LayerOptions without = window;
  without.push_back({"count_padding", "false"});
  expect_close(run_layer(GetParam(), "avg_pool", without, {1, 1, 2, 2}, {4, 8, 12, 16}), {4, 8, 12, 16});
}

TEST_P(EveryDevice, AvgPoolNeverCountsWhatLiesBeyondThePadding) {  // the last window holds one column alone
  expect_close(run_layer(GetParam(), "avg_pool", {{"kernel", "[1, 2]"}, {"stride", "2"}, {"rounding", "ceil"}},
                         {1, 1, 1, 3}, {2, 4, 7}),
               {3, 7});
}

TEST_P(EveryDevice, AvgPoolGradients) {
  const auto check = [&](const LayerOptions& options, const Shape& shape) {
    expect_gradients(GetParam(), "avg_pool", options, shape);
  };
  check({{"kernel", "2"}}, {2, 3, 6, 8});
  check({{"kernel", "2"}}, {1, 1, 7, 5});
  check({{"kernel", "3"}, {"stride", "2"}, {"rounding", "ceil"}}, {2, 2, 8, 10});
  check({{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}}, {2, 2, 8, 9});
  check({{"kernel", "3"}, {"stride", "2"}, {"pad", "1"}, {"count_padding", "false"}}, {2, 2, 8, 9});
  check({{"kernel", "[3, 2]"}, {"stride", "[1, 3]"}, {"pad", "[1, 0]"}}, {2, 2, 5, 8});
  check({{"kernel", "1"}}, {1, 2, 1, 1});
}

TEST(AvgPool, SaysWhatFits) {
  EXPECT_NE(layer_error("avg_pool", {{"kernel", "[1, 9]"}}, {3, 8, 8}).find("avg_pool: a kernel of 1x9 does not fit"),
            std::string::npos);
}

}  // namespace twiddle
