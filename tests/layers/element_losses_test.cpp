#include "layers/element_losses.h"

#include <cmath>

#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/every_device.h"

namespace twiddle {

namespace {

using Values = std::vector<float>;

// Selects one of the two losses, and its positive weights if it has any.
struct ElementLoss {
  bool binary;
  Values positive_weights = {};

  Variable operator()(Context& ctx, const Variable& output, const Tensor& targets, Tensor* sums = nullptr) const {
    if (!binary) return mean_squared_error(ctx, output, targets, sums);
    const auto count = static_cast<std::int64_t>(positive_weights.size());
    const Tensor weights = count > 0 ? Tensor::from(*ctx.stream, {count}, positive_weights) : Tensor();
    return binary_cross_entropy(ctx, output, targets, sums, weights);
  }

  float value(Device device, const Shape& shape, const Values& output, const Values& targets) const {
    Context ctx(device);
    const Variable loss =
        (*this)(ctx, Variable(Tensor::from(*ctx.stream, shape, output)), Tensor::from(*ctx.stream, shape, targets));
    return loss.value().to_vector(*ctx.stream).at(0);
  }

  Values gradient(Device device, const Shape& shape, const Values& output, const Values& targets) const {
    Context ctx(device);
    const Variable x(Tensor::from(*ctx.stream, shape, output), true);
    ctx.tape.backward(ctx, (*this)(ctx, x, Tensor::from(*ctx.stream, shape, targets)));
    return x.grad().to_vector(*ctx.stream);
  }

  void expect_gradient(Device device, const Shape& shape, const Values& output, const Values& targets) const {
    const Values slope = gradient(device, shape, output, targets);
    for (std::size_t i = 0; i < output.size(); ++i) {
      Values up = output, down = output;
      up[i] += 1e-2f, down[i] -= 1e-2f;
      const float difference = value(device, shape, up, targets) - value(device, shape, down, targets);
      EXPECT_NEAR(slope[i], difference / 2e-2f, 1e-4f) << i;
    }
  }
};

double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}

const Values logits{0.3f, -1.2f, 0.8f, 2.0f, 0.1f, -0.4f}, has{1, 0, 0, 1, 1, 0};

}  // namespace

TEST_P(EveryDevice, BinaryCrossEntropyMatchesPyTorch) {
  const Values weights{2, 0.5f, 3};
  double plain = 0, weighted = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double yes = -has[i] * std::log(sigmoid_of(logits[i])), no = -(1 - has[i]) * std::log(sigmoid_of(-logits[i]));
    plain += yes + no;
    weighted += weights[i % 3] * yes + no;
  }
  EXPECT_NEAR((ElementLoss{true}.value(GetParam(), {2, 3}, logits, has)), plain / 6, 1e-6);
  EXPECT_NEAR((ElementLoss{true, weights}.value(GetParam(), {2, 3}, logits, has)), weighted / 6, 1e-6);
}

TEST_P(EveryDevice, BinaryCrossEntropyGradients) {
  ElementLoss{true}.expect_gradient(GetParam(), {2, 3}, logits, has);
  ElementLoss{true, {2, 0.5f, 3}}.expect_gradient(GetParam(), {2, 3}, logits, has);
  ElementLoss{true, {2, 0.5f, 3}}.expect_gradient(GetParam(), {2, 3, 1, 1}, logits, {1, 0.3f, 0, 0.9f, 1, 0.5f});
}

TEST_P(EveryDevice, BinaryCrossEntropyOfLargeLogitsIsFinite) {
  const Values large{1000, -1000, 1000, -1000}, wanted{1, 0, 0, 1};
  EXPECT_NEAR((ElementLoss{true}.value(GetParam(), {2, 2}, large, wanted)), 500, 1e-3);
  expect_close(ElementLoss{true}.gradient(GetParam(), {2, 2}, large, wanted), {0, 0, 0.25f, -0.25f}, 1e-6f);
}

// Expected value of PyTorch's BCEWithLogitsLoss.
TEST_P(EveryDevice, BinaryCrossEntropyWeightsLargeNegativeLogits) {
  EXPECT_NEAR((ElementLoss{true, {1, 3}}.value(GetParam(), {1, 2}, {0, -120}, {0, 1})), 180.346574, 1e-4);
}

TEST_P(EveryDevice, BinaryCrossEntropyOfHugeLogitsIsFinite) {
  for (const float x : {1e20f, 1e38f}) {
    const ElementLoss loss{true};
    EXPECT_FLOAT_EQ(loss.value(GetParam(), {2, 2}, {x, -x, x, -x}, {1, 0, 0, 1}), x / 2);
    EXPECT_EQ(loss.gradient(GetParam(), {2, 2}, {x, -x, x, -x}, {1, 0, 0, 1}), (Values{0, 0, 0.25f, -0.25f}));
  }
}

TEST_P(EveryDevice, MeanSquaredErrorAveragesAllElements) {
  EXPECT_NEAR((ElementLoss{false}.value(GetParam(), {2, 1, 1, 2}, {1, 2, 3, 4}, {1, 0, 0, 0})), (4 + 9 + 16) / 4.0,
              1e-6);
  expect_close(ElementLoss{false}.gradient(GetParam(), {2, 1, 1, 2}, {1, 2, 3, 4}, {1, 0, 0, 0}), {0, 1, 1.5f, 2},
               1e-6f);
}

TEST_P(EveryDevice, MeanSquaredErrorGradients) {
  ElementLoss{false}.expect_gradient(GetParam(), {2, 3}, logits, has);
}

TEST_P(EveryDevice, ElementLossesSumImagesAndKeepNaN) {
  for (const bool binary : {false, true}) {
    Context ctx(GetParam());
    Stream& stream = *ctx.stream;
    Tensor sums = Tensor::from<float>(stream, {2}, {10, 100});
    const Tensor targets = Tensor::from(stream, {3, 2}, has);
    const Variable loss = ElementLoss{binary}(ctx, Variable(Tensor::from(stream, {3, 2}, logits)), targets, &sums);
    expect_close(sums.to_vector(stream), {10 + 3 * loss.value().to_vector(stream).at(0), 100}, 1e-6f);
    EXPECT_TRUE(std::isnan(ElementLoss{binary}.value(GetParam(), {1, 2}, {NAN, 0}, {1, 0})));
  }
}

TEST(ElementLosses, RefuseTargetsOfAnotherSize) {
  for (const bool binary : {false, true}) {
    Context ctx;
    const Variable output(Tensor::filled(*ctx.stream, {2, 3}, 0));
    EXPECT_THROW((ElementLoss{binary}(ctx, output, Tensor::filled(*ctx.stream, {2, 4}, 0))), Error);
    EXPECT_THROW((ElementLoss{binary}(ctx, output, Tensor::from<std::int32_t>(*ctx.stream, {6}, {0, 1, 0, 1, 0, 1}))),
                 Error);
  }
  EXPECT_THROW((ElementLoss{true, {1, 2}}.value({}, {2, 3}, logits, has)), Error);
}

}  // namespace twiddle
