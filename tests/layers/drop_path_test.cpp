#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, DropPathDropsImagesAndKeepsMean) {
  const std::vector<float> y =
      run_layer(GetParam(), "drop_path", {{"rate", "0.25"}}, {10000, 1, 1, 3}, std::vector<float>(30000, 3));
  std::int64_t dropped = 0;
  for (std::size_t image = 0; image < 10000; ++image) {
    const float first = y[3 * image];
    EXPECT_TRUE(first == 0 || first == 4) << first;
    EXPECT_EQ(y[3 * image + 1], first);
    EXPECT_EQ(y[3 * image + 2], first);
    dropped += first == 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped) / 10000, 0.25, 0.02);  // five deviations
}

TEST_P(EveryDevice, DropPathDrawsNewMaskEachTime) {
  LayerUnderTest test(GetParam(), "drop_path", {{"rate", "0.5"}}, {1});
  const std::vector<float> ones(100, 1);
  EXPECT_NE(test.forward({100, 1}, ones), test.forward({100, 1}, ones));
}

TEST_P(EveryDevice, DropPathPassesThroughInEvaluation) {
  LayerUnderTest test(GetParam(), "drop_path", {{"rate", "0.5"}}, {3});
  test.ctx.training = false;
  EXPECT_EQ(test.forward({1, 3}, {1, 2, 3}), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(test.ctx.random.position(), 0u);
}

TEST_P(EveryDevice, DropPathDropsNan) {
  const std::vector<float> y =
      run_layer(GetParam(), "drop_path", {{"rate", "0.999"}}, {4, 2}, std::vector<float>(8, NAN));
  EXPECT_EQ(std::count(y.begin(), y.end(), 0.0f), 8);
}

TEST_P(EveryDevice, DropPathGradients) {
  expect_gradients(GetParam(), "drop_path", {{"rate", "0.4"}}, {8, 3, 5, 5});
}

TEST(DropPath, RefusesToDropEverything) {
  EXPECT_NE(layer_error("drop_path", {{"rate", "1"}}, {4}).find("rate"), std::string::npos);
}

}  // namespace twiddle
