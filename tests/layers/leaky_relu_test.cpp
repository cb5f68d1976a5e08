#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, LeakyReluScalesNegatives) {
  EXPECT_EQ(run_layer(GetParam(), "leaky_relu", {{"slope", "0.5"}}, {1, 4}, {-4, 0, 2, -1}),
            (std::vector<float>{-2, 0, 2, -0.5f}));
}

TEST_P(EveryDevice, LeakyReluGradients) {
  expect_gradients(GetParam(), "leaky_relu", {}, {2, 3, 5, 5}, {.keep_away_from_zero = 0.1f});
  expect_gradients(GetParam(), "leaky_relu", {{"slope", "0"}}, {2, 7}, {.keep_away_from_zero = 0.1f});
  expect_gradients(GetParam(), "leaky_relu", {{"slope", "1"}}, {2, 7});
}

TEST(LeakyRelu, RefusesNegativeSlope) {
  EXPECT_NE(layer_error("leaky_relu", {{"slope", "-0.1"}}, {4}).find("slope"), std::string::npos);
}

}  // namespace twiddle
