#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, FlattenKeepsOrder) {
  EXPECT_EQ(run_layer(GetParam(), "flatten", {}, {2, 1, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
            (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(EveryDevice, FlattenDoesNotCopy) {
  LayerUnderTest test(GetParam(), "flatten", {}, {3, 2, 2});
  EXPECT_EQ(test.layer->output_shape(), (Shape{12}));
  const Variable x(Tensor::filled(*test.ctx.stream, {2, 3, 2, 2}, 1));
  EXPECT_EQ(test.layer->forward(test.ctx, x).value().version(), x.value().version());
}

TEST_P(EveryDevice, FlattenGradients) {
  expect_gradients(GetParam(), "flatten", {}, {2, 3, 2, 5});
}

}  // namespace twiddle
