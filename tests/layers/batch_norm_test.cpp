#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/check_layer.h"
#include "tests/support/noise.h"
#include "tests/support/norm_reference.h"

namespace twiddle {

TEST_P(EveryDevice, BatchNormCentersAndScales) {
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

TEST_P(EveryDevice, BatchNormWithMomentumOneKeepsLastBatch) {
  LayerUnderTest test(GetParam(), "batch_norm", {{"momentum", "1"}, {"epsilon", "1e-12"}}, {1, 1, 2});
  test.forward({1, 1, 1, 2}, {100, 300});
  expect_close(test.forward({1, 1, 1, 2}, {2, 6}), {-1, 1});
  EXPECT_EQ(test.get("running_mean"), (std::vector<float>{4}));
  EXPECT_EQ(test.get("running_var"), (std::vector<float>{8}));
  EXPECT_EQ(test.forward({1, 1, 1, 2}, {3, 3}), (std::vector<float>{0, 0}));
}

TEST_P(EveryDevice, BatchNormIsAccurateFarFromZero) {
  const std::vector<float> y = run_layer(GetParam(), "batch_norm", {}, {4, 1}, {10000, 10001, 10002, 10003});
  expect_close(y, {-1.341635f, -0.447212f, 0.447212f, 1.341635f}, 1e-4f);
}

TEST_P(EveryDevice, BatchNormOfPlanesIsAccurateFarFromZero) {
  const Shape shape{4, 2, 20, 30};
  std::vector<float> x = noise(count_of(shape), 1);
  for (float& value : x) value += 1000;
  std::vector<float> first, y_first;
  const std::vector<float> y = run_layer(GetParam(), "batch_norm", {}, shape, x);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (i / 600 % 2 == 0) first.push_back(x[i]), y_first.push_back(y[i]);
  EXPECT_LE(relative_error(y_first, normalized(first)), 1e-4);
}

// Training in fp16 skips such a batch and continues. The second channel is finite.
TEST_P(EveryDevice, BatchNormAveragesStayFinite) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& bad : {std::vector<float>{infinity, 1}, {NAN, 1}, {3e38f, -3e38f}})
    for (const Shape& image : {Shape{2}, Shape{2, 2, 2}}) {
      const std::size_t inner = image.size() > 1 ? 4 : 1;
      LayerUnderTest test(GetParam(), "batch_norm", {{"momentum", "0.5"}}, image);
      test.set("running_mean", {5, 1});
      test.set("running_var", {7, 1});
      std::vector<float> x;
      for (const float value : {bad[0], 2.0f, bad[1], 4.0f}) x.insert(x.end(), inner, value);
      const std::vector<float> y = test.forward(with_batch(2, image), x);
      EXPECT_TRUE(std::isnan(y.front()));
      const auto count = static_cast<float>(2 * inner);
      expect_close(test.get("running_mean"), {5, 2});
      expect_close(test.get("running_var"), {7, 0.5f + 0.5f * count / (count - 1)});
    }
}

// NaN makes the overflow visible; zeros would hide it.
TEST_P(EveryDevice, BatchNormOfInfiniteVarianceIsNaN) {
  LayerUnderTest test(GetParam(), "batch_norm", {}, {1});
  test.set("running_var", {std::numeric_limits<float>::infinity()});
  test.ctx.training = false;
  EXPECT_TRUE(std::isnan(test.forward({1, 1}, {2}).at(0)));
}

// The gradient of elements that the ReLU passes is the same as without the ReLU.
TEST_P(EveryDevice, BatchNormFusesRelu) {
  for (const Shape& shape : {Shape{3, 2, 4, 5}, Shape{12, 3}}) {
    const Shape image(shape.begin() + 1, shape.end());
    LayerUnderTest with_relu(GetParam(), "batch_norm", {}, image), alone(GetParam(), "batch_norm", {}, image);
    std::vector<float> scale{2, -1, 0.5f}, bias{0.3f, -0.2f, 0.1f};
    scale.resize(static_cast<std::size_t>(image[0])), bias.resize(static_cast<std::size_t>(image[0]));
    for (LayerUnderTest* test : {&with_relu, &alone}) test->set("scale", scale), test->set("bias", bias);
    ASSERT_TRUE(with_relu.layer->take_over_relu());
    const std::vector<float> x = noise(count_of(shape), 1);
    std::vector<float> grad_y = noise(count_of(shape), 2), expected = alone.forward(shape, x);
    const LayerUnderTest::Passes passes = with_relu.forward_and_backward(shape, x, grad_y);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (expected[i] <= 0) grad_y[i] = 0;
      expected[i] = std::max(expected[i], 0.0f);
    }
    expect_close(passes.y, expected);
    expect_close(passes.grad_x, alone.forward_and_backward(shape, x, grad_y).grad_x);
    for (const char* name : {"scale", "bias"})
      expect_close(with_relu.parameter(name).variable.grad().to_vector(*with_relu.ctx.stream),
                   alone.parameter(name).variable.grad().to_vector(*alone.ctx.stream));
    for (LayerUnderTest* test : {&with_relu, &alone}) {
      test->set("running_mean", bias);
      test->ctx.training = false;
    }
    with_relu.set("running_var", alone.get("running_var"));
    std::vector<float> evaluated = alone.forward(shape, x);
    for (float& value : evaluated) value = std::max(value, 0.0f);
    expect_close(with_relu.forward(shape, x), evaluated);
  }
}

TEST_P(EveryDevice, BatchNormGradients) {
  expect_gradients(GetParam(), "batch_norm", {}, {4, 3, 5, 3});
  expect_gradients(GetParam(), "batch_norm", {}, {6, 5});
  expect_gradients(GetParam(), "batch_norm", {}, {1, 2, 3, 3});
}

// A frozen batch norm uses its running averages and does not change them: y = 3 (x - 2) / 4 + 5.
TEST_P(EveryDevice, BatchNormIfFrozenUsesRunningAverages) {
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

TEST_P(EveryDevice, BatchNormIfFrozenFusesRelu) {
  LayerUnderTest test(GetParam(), "batch_norm", {{"epsilon", "1e-12"}}, {1});
  for (const char* name : {"scale", "bias"}) test.parameter(name).trainable = false, test.parameter(name).frozen = true;
  ASSERT_TRUE(test.layer->take_over_relu());
  const LayerUnderTest::Passes passes = test.forward_and_backward({3, 1}, {-1, 2, 3}, {1, 4, 5});
  expect_close(passes.y, {0, 2, 3});
  expect_close(passes.grad_x, {0, 4, 5});
}

TEST(BatchNorm, RunningAveragesAreNotOptimized) {
  LayerUnderTest test({}, "batch_norm", {}, {3, 4, 4});
  for (const char* name : {"scale", "bias"}) {
    EXPECT_TRUE(test.parameter(name).trainable) << name;
    EXPECT_FALSE(test.parameter(name).weight_decay) << name;
  }
  for (const char* name : {"running_mean", "running_var"}) EXPECT_FALSE(test.parameter(name).trainable) << name;
}

TEST(BatchNorm, RefusesSingleValue) {
  LayerUnderTest test({}, "batch_norm", {}, {3});
  EXPECT_THROW(test.forward({1, 3}, {1, 2, 3}), Error);
}

}  // namespace twiddle
