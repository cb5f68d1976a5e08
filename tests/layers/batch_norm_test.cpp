#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, BatchNormCentresAndScales) {
  LayerUnderTest test(GetParam(), "batch_norm", {}, {2});
  test.set("scale", {1, 10});
  test.set("bias", {0, 5});
  // Channel 0 holds 1, 3: mean 2, deviation 1. Channel 1 holds 0, 8: mean 4, deviation 4.
  expect_close(test.forward({2, 2}, {1, 0, 3, 8}), {-1, -5, 1, 15}, 1e-5f);
}

TEST_P(EveryDevice, BatchNormAveragesForEvaluation) {
  LayerUnderTest test(GetParam(), "batch_norm", {{"momentum", "0.5"}}, {1, 1, 2});
  test.forward({1, 1, 1, 2}, {2, 6});  // mean 4, unbiased variance 8
  expect_close(test.get("running_mean"), {2});
  expect_close(test.get("running_var"), {4.5f});
  test.ctx.training = false;
  expect_close(test.forward({1, 1, 1, 2}, {2, 6.5f}), {0, 4.5f / std::sqrt(4.5f)});
  expect_close(test.get("running_mean"), {2});  // evaluation leaves them alone
}

TEST_P(EveryDevice, BatchNormIsAccurateFarFromZero) {
  const std::vector<float> y = run_layer(GetParam(), "batch_norm", {}, {4, 1}, {10000, 10001, 10002, 10003});
  expect_close(y, {-1.341635f, -0.447212f, 0.447212f, 1.341635f}, 1e-4f);
}

TEST_P(EveryDevice, BatchNormGradients) {
  expect_gradients(GetParam(), "batch_norm", {}, {4, 3, 5, 3});
  expect_gradients(GetParam(), "batch_norm", {}, {6, 5});
  expect_gradients(GetParam(), "batch_norm", {}, {1, 2, 3, 3});
}

// A frozen one goes by its running averages and leaves them alone: y = 3 (x - 2) / 4 + 5.
TEST_P(EveryDevice, BatchNormThatIsFrozenUsesItsAverages) {
  LayerUnderTest test(GetParam(), "batch_norm", {{"epsilon", "1e-12"}}, {1});
  test.set("running_mean", {2});
  test.set("running_var", {16});
  test.set("scale", {3});
  test.set("bias", {5});
  for (const char* name : {"scale", "bias"}) test.parameter(name).trainable = false, test.parameter(name).frozen = true;
  const LayerUnderTest::Passes passes = test.forward_and_backward({2, 1}, {2, 6}, {1, 4});
  expect_close(passes.y, {5, 8});
  expect_close(passes.grad_x, {0.75f, 3});
  expect_close(test.get("running_mean"), {2});
  expect_close(test.get("running_var"), {16});
}

TEST(BatchNorm, KeepsItsStateFromTheOptimizer) {
  LayerUnderTest test({}, "batch_norm", {}, {3, 4, 4});
  for (const char* name : {"scale", "bias"}) {
    EXPECT_TRUE(test.parameter(name).trainable) << name;
    EXPECT_FALSE(test.parameter(name).weight_decay) << name;
  }
  for (const char* name : {"running_mean", "running_var"}) EXPECT_FALSE(test.parameter(name).trainable) << name;
}

TEST(BatchNorm, NeedsMoreThanOneValue) {
  LayerUnderTest test({}, "batch_norm", {}, {3});
  EXPECT_THROW(test.forward({1, 3}, {1, 2, 3}), Error);
}

}  // namespace twiddle
