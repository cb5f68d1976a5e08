#include "tests/support/check_layer.h"
#include "tests/support/noise.h"
#include "tests/support/norm_reference.h"

namespace twiddle {

TEST_P(EveryDevice, GroupNormGroupsAdjacentChannels) {
  LayerUnderTest test(GetParam(), "group_norm", {{"groups", "2"}}, {4, 1, 1});
  test.set("scale", {1, 10, 1, 1});
  test.set("bias", {0, 5, 0, 0});
  // The first group holds 1 and 3: mean 2, deviation 1; the second 0 and 8: mean 4, deviation 4.
  expect_close(test.forward({1, 4, 1, 1}, {1, 3, 0, 8}), {-1, 15, -1, 1});
}

TEST_P(EveryDevice, GroupNormMatchesDouble) {
  const std::vector<float> group = noise(3 * 30 * 40, 1), other = noise(3 * 30 * 40, 2);
  std::vector<float> x = group, expected = normalized(group);
  for (const float value : other) x.push_back(value + 1000);
  for (const float value : normalized(other)) expected.push_back(value);
  expect_close(run_layer(GetParam(), "group_norm", {{"groups", "2"}}, {1, 6, 30, 40}, x), expected, 1e-4f);
}

TEST_P(EveryDevice, GroupNormInputGradientIgnoresFreezing) {
  expect_same_input_gradient_where_frozen(GetParam(), "group_norm", {{"groups", "2"}}, {3, 6, 5, 3});
}

TEST_P(EveryDevice, GroupNormGradients) {
  expect_gradients(GetParam(), "group_norm", {{"groups", "2"}}, {3, 6, 5, 3});
  expect_gradients(GetParam(), "group_norm", {{"groups", "1"}}, {3, 4, 3, 3});
  expect_gradients(GetParam(), "group_norm", {{"groups", "3"}}, {4, 12});
}

TEST(GroupNorm, RequiresChannelsDivisibleByGroups) {
  EXPECT_NE(layer_error("group_norm", {{"groups", "4"}}, {6, 3, 3}).find("6 channels of 6x3x3 into 4 groups"),
            std::string::npos);
}

TEST(GroupNorm, HasUndecayedScaleAndBias) {
  LayerUnderTest test({}, "group_norm", {}, {64, 2, 2});
  for (const char* name : {"scale", "bias"}) {
    EXPECT_EQ(test.parameter(name).shape, (Shape{64})) << name;
    EXPECT_FALSE(test.parameter(name).weight_decay) << name;
  }
}

}  // namespace twiddle
