#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, ReluKeepsPositives) {
  EXPECT_EQ(run_layer(GetParam(), "relu", {}, {1, 4}, {-1, 0, 2, 3}), (std::vector<float>{0, 0, 2, 3}));
}

TEST_P(EveryDevice, ReluKeepsNaN) {
  const std::vector<float> y = run_layer(GetParam(), "relu", {}, {1, 2}, {NAN, INFINITY});
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], INFINITY);
}

TEST_P(EveryDevice, ReluGradients) {
  expect_gradients(GetParam(), "relu", {}, {2, 3, 5, 5}, {.keep_away_from_zero = 0.1f});
  expect_gradients(GetParam(), "relu", {}, {1, 1}, {.keep_away_from_zero = 0.1f});
}

}  // namespace twiddle
