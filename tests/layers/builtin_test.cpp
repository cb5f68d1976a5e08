#include "tests/support/check_layer.h"

namespace twiddle {

TEST(BuiltinLayers, SuggestsTheNearestName) {
  EXPECT_EQ(layer_error("rellu", {}, {3}), "unknown layer 'rellu'; did you mean 'relu'?");
}

TEST(BuiltinLayers, NamesParametersAfterTheLayer) {
  LayerUnderTest test({}, "linear", {{"outputs", "2"}}, {3});
  EXPECT_EQ(test.parameter("weight").name, "layer.weight");
  EXPECT_TRUE(test.parameter("weight").variable.needs_grad());
  LayerUnderTest norm({}, "batch_norm", {}, {3});
  EXPECT_FALSE(norm.parameter("running_mean").variable.needs_grad());
}

}  // namespace twiddle
