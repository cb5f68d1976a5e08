#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, GlobalAvgPoolAveragesPlanes) {
  EXPECT_EQ(run_layer(GetParam(), "global_avg_pool", {}, {1, 2, 2, 2}, {1, 2, 3, 6, -1, -1, -1, -1}),
            (std::vector<float>{3, -1}));
}

TEST_P(EveryDevice, GlobalAvgPoolGradients) {
  expect_gradients(GetParam(), "global_avg_pool", {}, {2, 3, 5, 7});
  expect_gradients(GetParam(), "global_avg_pool", {}, {1, 2, 1, 1});
}

TEST(GlobalAvgPool, RequiresPlanes) {
  EXPECT_NE(layer_error("global_avg_pool", {}, {100}).find("gets 100"), std::string::npos);
}

}  // namespace twiddle
