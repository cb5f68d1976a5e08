#include "tests/support/check_layer.h"

namespace twiddle {

// The expected values are the two formulas in double.
TEST_P(EveryDevice, GeluMatchesNormalDistribution) {
  expect_close(run_layer(GetParam(), "gelu", {}, {1, 4}, {-3, -0.5f, 0, 2}),
               {-0.00404969f, -0.15426877f, 0, 1.95449974f}, 1e-6f);
  expect_close(run_layer(GetParam(), "gelu", {{"approximate", "tanh"}}, {1, 4}, {-3, -0.5f, 0, 2}),
               {-0.00363739f, -0.15428599f, 0, 1.95459769f}, 1e-6f);
}

TEST_P(EveryDevice, GeluGradients) {
  expect_gradients(GetParam(), "gelu", {}, {2, 3, 5, 5});
  expect_gradients(GetParam(), "gelu", {{"approximate", "tanh"}}, {2, 7});
}

TEST(Gelu, HasExactAndTanhForms) {
  EXPECT_NE(layer_error("gelu", {{"approximate", "erf"}}, {4}).find("one of none, tanh"), std::string::npos);
}

}  // namespace twiddle
