#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, TanhOfHalfLogThree) {  // (3 - 1) / (3 + 1)
  expect_close(run_layer(GetParam(), "tanh", {}, {1, 3}, {0, std::log(3.0f) / 2, -std::log(3.0f) / 2}),
               {0, 0.5f, -0.5f}, 1e-6f);
}

TEST_P(EveryDevice, TanhSaturatesWithoutNaN) {
  EXPECT_EQ(run_layer(GetParam(), "tanh", {}, {2, 1}, {1000, -1000}), (std::vector<float>{1, -1}));
}

TEST_P(EveryDevice, TanhGradients) {
  expect_gradients(GetParam(), "tanh", {}, {2, 3, 5, 5});
}

}  // namespace twiddle
