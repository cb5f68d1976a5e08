#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, LocalResponseNormDividesByNeighbors) {
  // size 3, alpha 3, beta 1, k 1: y = x / (1 + sum of squares of the neighbours and itself)
  expect_close(run_layer(GetParam(), "local_response_norm", {{"size", "3"}, {"alpha", "3"}, {"beta", "1"}, {"k", "1"}},
                         {1, 4, 1, 1}, {1, 2, 0, 3}),
               {1.0f / 6, 2.0f / 6, 0, 3.0f / 10});
}

TEST_P(EveryDevice, LocalResponseNormMatchesAlexNet) {  // one channel: x / (2 + 1e-4 / 5 x^2)^0.75
  expect_close(run_layer(GetParam(), "local_response_norm", {}, {1, 1, 1, 2}, {100, -3}),
               {100 / std::pow(2.2f, 0.75f), -3 / std::pow(2.00018f, 0.75f)});
}

TEST_P(EveryDevice, LocalResponseNormIsExactAfterLargeValue) {
  const std::vector<float> y = run_layer(GetParam(), "local_response_norm", {{"size", "3"}, {"alpha", "3"}, {"k", "1"}},
                                         {1, 4, 1, 1}, {1e6f, 0, 0, 1e-3f});
  EXPECT_NEAR(y[3], 1e-3f, 1e-8f);
}

TEST_P(EveryDevice, LocalResponseNormIsZeroIfSquareOverflows) {
  expect_close(run_layer(GetParam(), "local_response_norm", {}, {1, 2, 1, 1}, {1e30f, 1}), {0, 0});
}

TEST_P(EveryDevice, LocalResponseNormGradients) {
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}}, {2, 7, 3, 5});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}}, {2, 21, 3, 5});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}}, {2, 48, 3, 3});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "2"}, {"beta", "0.6"}, {"k", "1"}}, {1, 4, 2, 3});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}, {"size", "9"}}, {2, 3, 1, 1});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}, {"size", "1"}}, {2, 5});
}

TEST(LocalResponseNorm, RequiresOddSize) {
  EXPECT_NE(layer_error("local_response_norm", {{"size", "4"}}, {3, 2, 2}).find("must be odd"), std::string::npos);
}

}  // namespace twiddle
