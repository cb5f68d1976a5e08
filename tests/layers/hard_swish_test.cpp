#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, HardSwishMatchesDefinition) {
  expect_close(run_layer(GetParam(), "hard_swish", {}, {1, 6}, {-4, -3, -1.5f, 0, 1.5f, 4}),
               {0, 0, -0.375f, 0, 1.125f, 4});
}

TEST_P(EveryDevice, HardSwishKeepsNaN) {
  EXPECT_TRUE(std::isnan(run_layer(GetParam(), "hard_swish", {}, {1, 1}, {NAN}).front()));
}

TEST_P(EveryDevice, HardSwishGradients) {
  expect_gradients(GetParam(), "hard_swish", {}, {2, 3, 5, 5});
}

}  // namespace twiddle
