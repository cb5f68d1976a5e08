#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, SiluWeighsByTheSigmoid) {
  // sigmoid(ln 3) = 3/4
  const float ln3 = std::log(3.0f);
  expect_close(run_layer(GetParam(), "silu", {}, {1, 4}, {ln3, -ln3, 0, -200}), {0.75f * ln3, -0.25f * ln3, 0, 0});
}

TEST_P(EveryDevice, SiluGradients) {
  expect_gradients(GetParam(), "silu", {}, {2, 3, 5, 5});
}

}  // namespace twiddle
