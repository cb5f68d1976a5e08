#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, ScaleMultipliesEachChannel) {
  LayerUnderTest test(GetParam(), "scale", {{"init", "0.5"}}, {2, 1, 2});
  EXPECT_EQ(test.forward({1, 2, 1, 2}, {1, 2, 3, 4}), (std::vector<float>{0.5f, 1, 1.5f, 2}));
  test.set("scale", {2, -1});
  EXPECT_EQ(test.forward({1, 2, 1, 2}, {1, 2, 3, 4}), (std::vector<float>{2, 4, -3, -4}));
}

TEST_P(EveryDevice, ScaleGradients) {
  expect_gradients(GetParam(), "scale", {}, {4, 3, 5, 5});
  expect_gradients(GetParam(), "scale", {{"init", "1e-6"}}, {6, 5});
}

TEST(Scale, IsNotDecayed) {
  LayerUnderTest test({}, "scale", {}, {3, 2, 2});
  EXPECT_EQ(test.parameter("scale").shape, (Shape{3}));
  EXPECT_FALSE(test.parameter("scale").weight_decay);
}

}  // namespace twiddle
