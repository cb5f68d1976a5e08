#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, SigmoidOfLogThree) {
  expect_close(run_layer(GetParam(), "sigmoid", {}, {1, 3}, {0, std::log(3.0f), -std::log(3.0f)}), {0.5f, 0.75f, 0.25f},
               1e-6f);
}

TEST_P(EveryDevice, SigmoidSaturatesWithoutNaN) {
  EXPECT_EQ(run_layer(GetParam(), "sigmoid", {}, {2, 1}, {1000, -1000}), (std::vector<float>{1, 0}));
}

TEST_P(EveryDevice, SigmoidGradients) {
  expect_gradients(GetParam(), "sigmoid", {}, {2, 3, 5, 5});
}

}  // namespace twiddle
