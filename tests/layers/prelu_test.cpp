#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, PReluHasOneSlopePerChannel) {
  LayerUnderTest test(GetParam(), "prelu", {}, {2, 1, 2});
  EXPECT_EQ(test.forward({1, 2, 1, 2}, {-4, 4, -8, 8}), (std::vector<float>{-1, 4, -2, 8}));
  test.set("slope", {0.5f, -1});
  EXPECT_EQ(test.forward({1, 2, 1, 2}, {-4, 4, -8, 8}), (std::vector<float>{-2, 4, 8, 8}));
}

TEST_P(EveryDevice, PReluGradients) {
  expect_gradients(GetParam(), "prelu", {}, {4, 3, 5, 5}, {.keep_away_from_zero = 0.1f});
  expect_gradients(GetParam(), "prelu", {{"init", "-0.5"}}, {6, 5}, {.keep_away_from_zero = 0.1f});
}

TEST(PRelu, IsNotDecayed) {
  LayerUnderTest test({}, "prelu", {}, {3, 2, 2});
  EXPECT_EQ(test.parameter("slope").shape, (Shape{3}));
  EXPECT_FALSE(test.parameter("slope").weight_decay);
}

}  // namespace twiddle
