#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, DropoutDropsItsRateAndKeepsMean) {
  const std::vector<float> y =
      run_layer(GetParam(), "dropout", {{"rate", "0.25"}}, {10, 1000}, std::vector<float>(10000, 3));
  std::int64_t dropped = 0;
  for (const float value : y) {
    EXPECT_TRUE(value == 0 || value == 4) << value;
    dropped += value == 0;
  }
  EXPECT_NEAR(static_cast<double>(dropped) / 10000, 0.25, 0.02);  // five deviations
}

TEST_P(EveryDevice, DropoutDrawsNewMaskEachTime) {
  LayerUnderTest test(GetParam(), "dropout", {}, {100});
  const std::vector<float> ones(100, 1);
  EXPECT_NE(test.forward({1, 100}, ones), test.forward({1, 100}, ones));
}

TEST_P(EveryDevice, DropoutPassesThroughInEvaluation) {
  LayerUnderTest test(GetParam(), "dropout", {}, {3});
  test.ctx.training = false;
  EXPECT_EQ(test.forward({1, 3}, {1, 2, 3}), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(test.ctx.random.position(), 0u);
}

TEST_P(EveryDevice, DropoutGradients) {
  expect_gradients(GetParam(), "dropout", {}, {2, 3, 5, 5});
  expect_gradients(GetParam(), "dropout", {{"rate", "0.9"}}, {4, 50});
}

TEST(Dropout, RefusesToDropEverything) {
  EXPECT_NE(layer_error("dropout", {{"rate", "1"}}, {4}).find("rate"), std::string::npos);
}

}  // namespace twiddle
