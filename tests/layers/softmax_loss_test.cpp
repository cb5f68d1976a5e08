#include "layers/softmax_loss.h"

#include <cmath>

#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/every_device.h"

namespace twiddle {

namespace {

// The loss of some logits, and its gradient.
struct Loss {
  Context ctx;
  Variable logits;
  float value = 0;

  Loss(Device device, const Shape& shape, const std::vector<float>& values, const std::vector<std::int32_t>& labels,
       float smoothing = 0)
      : ctx(device), logits(Tensor::from(*ctx.stream, shape, values), true) {
    const Tensor label = Tensor::from<std::int32_t>(*ctx.stream, {static_cast<std::int64_t>(labels.size())}, labels);
    const Variable loss = softmax_loss(ctx, logits, label, smoothing);
    value = loss.value().to_vector(*ctx.stream).at(0);
    ctx.tape.backward(ctx, loss);
  }
  std::vector<float> gradient() { return logits.grad().to_vector(*ctx.stream); }
};

}  // namespace

TEST_P(EveryDevice, SoftmaxLossIsNegativeLogProbability) {
  // Probabilities 1/4 and 3/4, then 1/2 and 1/2.
  Loss loss(GetParam(), {2, 2}, {0, std::log(3.0f), 5, 5}, {1, 0});
  EXPECT_NEAR(loss.value, (std::log(4.0 / 3) + std::log(2.0)) / 2, 1e-6);
  expect_close(loss.gradient(), {0.125f, -0.125f, -0.25f, 0.25f}, 1e-6f);
}

TEST_P(EveryDevice, SoftmaxLossSmoothsLabels) {  // target 0.9 and 0.1
  Loss loss(GetParam(), {1, 2}, {0, std::log(3.0f)}, {1}, 0.2f);
  EXPECT_NEAR(loss.value, 0.9 * std::log(4.0 / 3) + 0.1 * std::log(4.0), 1e-6);
  expect_close(loss.gradient(), {0.25f - 0.1f, 0.75f - 0.9f}, 1e-6f);
}

TEST_P(EveryDevice, SoftmaxLossOfLargeLogitsIsFinite) {
  Loss loss(GetParam(), {2, 3}, {1000, 0, -1000, -1e30f, -1e30f, -1e30f}, {0, 2});
  EXPECT_NEAR(loss.value, std::log(3.0) / 2, 1e-6);
  for (const float value : loss.gradient()) EXPECT_TRUE(std::isfinite(value));
}

TEST_P(EveryDevice, SoftmaxLossOfHugeLogitsHasFiniteGradients) {
  for (const float x : {1e20f, 1e38f, 3e38f}) {
    Loss right(GetParam(), {1, 2}, {x, -x}, {0}), wrong(GetParam(), {1, 2}, {x, -x}, {1});
    EXPECT_EQ(right.value, 0) << x;
    EXPECT_EQ(right.gradient(), (std::vector<float>{0, 0})) << x;
    EXPECT_EQ(wrong.value, 2 * x);  // infinity from 1.8e38 on: more than a float holds
    EXPECT_EQ(wrong.gradient(), (std::vector<float>{1, -1})) << x;
  }
}

TEST_P(EveryDevice, SoftmaxLossShowsNaN) {
  EXPECT_TRUE(std::isnan(Loss(GetParam(), {1, 2}, {0, NAN}, {0}).value));
}

TEST_P(EveryDevice, SoftmaxLossFollowsDifferences) {
  const std::vector<float> logits{0.3f, -1.2f, 0.8f, 2.0f, 0.1f, -0.4f};
  const std::vector<float> gradient = Loss(GetParam(), {2, 3}, logits, {2, 1}, 0.1f).gradient();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    std::vector<float> up = logits, down = logits;
    up[i] += 1e-2f, down[i] -= 1e-2f;
    const float difference =
        Loss(GetParam(), {2, 3}, up, {2, 1}, 0.1f).value - Loss(GetParam(), {2, 3}, down, {2, 1}, 0.1f).value;
    EXPECT_NEAR(gradient[i], difference / 2e-2f, 1e-4f) << i;
  }
}

namespace {

// PyTorch's CrossEntropyLoss for soft targets, in double: the mean over the rows, weighted by their targets' weights.
struct Reference {
  std::int64_t classes;
  std::vector<double> class_weights;
  double smoothing;

  double operator()(const std::vector<float>& logits, const std::vector<float>& shares) const {
    double loss = 0, weight = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const std::size_t row = i / classes * classes;
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(double(logits[row + c]));
      const double target = (1 - smoothing) * shares[i] + smoothing / double(classes);
      loss += class_weights[i % classes] * target * (std::log(sum) - logits[i]);
      weight += class_weights[i % classes] * shares[i];
    }
    return loss / weight;
  }
};

// The loss of a batch of soft targets or labels, with class weights.
struct WeightedLoss {
  Device device;
  std::vector<float> class_weights;
  float smoothing;

  Variable of(Context& ctx, const Variable& logits, const Tensor& targets) const {
    return softmax_loss(ctx, logits, targets, smoothing, nullptr, Tensor::from(*ctx.stream, {3}, class_weights));
  }
  float value(const std::vector<float>& logits, const std::vector<float>& shares) const {
    Context ctx(device);
    const Variable x(Tensor::from(*ctx.stream, {2, 3}, logits));
    return of(ctx, x, Tensor::from(*ctx.stream, {2, 3}, shares)).value().to_vector(*ctx.stream).at(0);
  }
  float of_labels(const std::vector<float>& logits, const std::vector<std::int32_t>& labels) const {
    Context ctx(device);
    const Variable x(Tensor::from(*ctx.stream, {2, 3}, logits));
    return of(ctx, x, Tensor::from(*ctx.stream, {2}, labels)).value().to_vector(*ctx.stream).at(0);
  }
  std::vector<float> gradient(const std::vector<float>& logits, const std::vector<float>& shares) const {
    Context ctx(device);
    const Variable x(Tensor::from(*ctx.stream, {2, 3}, logits), true);
    ctx.tape.backward(ctx, of(ctx, x, Tensor::from(*ctx.stream, {2, 3}, shares)));
    return x.grad().to_vector(*ctx.stream);
  }
};

const std::vector<float> some_logits{0.3f, -1.2f, 0.8f, 2.0f, 0.1f, -0.4f};

}  // namespace

TEST_P(EveryDevice, SoftmaxLossWeightsClassesAsPyTorch) {
  for (const float smoothing : {0.0f, 0.1f}) {
    const Reference reference{3, {2, 0.5, 3}, smoothing};
    const WeightedLoss loss{GetParam(), {2, 0.5f, 3}, smoothing};
    EXPECT_NEAR(loss.of_labels(some_logits, {2, 1}), reference(some_logits, {0, 0, 1, 0, 1, 0}), 1e-6);
    const std::vector<float> shares{0.3f, 0, 0.7f, 0, 0.7f, 0.3f};
    EXPECT_NEAR(loss.value(some_logits, shares), reference(some_logits, shares), 1e-6);
  }
}

// Values of PyTorch's CrossEntropyLoss.
TEST_P(EveryDevice, SoftmaxLossSmoothsWeightedClassesAsPyTorch) {
  for (const auto& [smoothing, expected] : {std::pair(0.0f, 0.995889), std::pair(0.1f, 0.991042)}) {
    Context ctx(GetParam());
    Stream& stream = *ctx.stream;
    const Variable logits(Tensor::from<float>(stream, {3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
    const Variable loss = softmax_loss(ctx, logits, Tensor::from<std::int32_t>(stream, {3}, {0, 2, 2}), smoothing,
                                       nullptr, Tensor::from<float>(stream, {3}, {1, 2, 4}));
    EXPECT_NEAR(loss.value().to_vector(stream).at(0), expected, 1e-6);
  }
}

TEST_P(EveryDevice, SoftmaxLossOfSoftTargetsHasGradients) {
  const WeightedLoss loss{GetParam(), {2, 0.5f, 3}, 0.1f};
  const std::vector<float> shares{0.3f, 0, 0.7f, 0, 0.7f, 0.3f}, gradient = loss.gradient(some_logits, shares);
  for (std::size_t i = 0; i < some_logits.size(); ++i) {
    std::vector<float> up = some_logits, down = some_logits;
    up[i] += 1e-2f, down[i] -= 1e-2f;
    EXPECT_NEAR(gradient[i], (loss.value(up, shares) - loss.value(down, shares)) / 2e-2f, 1e-4f) << i;
  }
}

// As in mixup: the second labels are the batch's labels in another order.
TEST_P(EveryDevice, SoftmaxLossOfMixedLabelsIsWeightedSum) {
  const WeightedLoss loss{GetParam(), {2, 0.5f, 3}, 0.1f};
  const float mixed = 0.7f * loss.of_labels(some_logits, {2, 1}) + 0.3f * loss.of_labels(some_logits, {1, 2});
  EXPECT_NEAR(loss.value(some_logits, {0, 0.3f, 0.7f, 0, 0.7f, 0.3f}), mixed, 1e-6);
}

TEST_P(EveryDevice, SoftmaxLossCountsLargestTargetAsLabel) {
  Context ctx(GetParam());
  Tensor sums = Tensor::filled(*ctx.stream, {2}, 0);
  softmax_loss(ctx, Variable(Tensor::from<float>(*ctx.stream, {3, 2}, {5, 1, 5, 1, 5, 1})),
               Tensor::from<float>(*ctx.stream, {3, 2}, {0.7f, 0.3f, 0.3f, 0.7f, 0, 1}), 0, &sums);
  EXPECT_EQ(sums.to_vector(*ctx.stream).at(1), 1);
}

TEST_P(EveryDevice, SoftmaxLossAcceptsTrailingOnes) {
  EXPECT_NEAR(Loss(GetParam(), {1, 2, 1, 1}, {0, 0}, {1}).value, std::log(2.0), 1e-6);
}

// If scores are equal, the lower class is first; a row with a NaN is never correct.
TEST_P(EveryDevice, SoftmaxLossSumsLossAndCorrectRows) {
  Context ctx(GetParam());
  Stream& stream = *ctx.stream;
  const Variable logits(Tensor::from<float>(stream, {5, 3}, {1, 9, 2, 7, 7, 7, 7, 7, 7, 0, -3, 4, -9, -8, -7}));
  const Tensor labels = Tensor::from<std::int32_t>(stream, {5}, {1, 0, 1, 2, 0});
  Tensor sums = Tensor::from<float>(stream, {2}, {10, 100});
  const float mean = softmax_loss(ctx, logits, labels, 0, &sums).value().to_vector(stream).at(0);
  expect_close(sums.to_vector(stream), {10 + 5 * mean, 103}, 1e-6f);

  const Variable broken(Tensor::from<float>(stream, {3, 2}, {NAN, 1, 0, NAN, NAN, NAN}));
  Tensor none = Tensor::filled(stream, {2}, 0);
  softmax_loss(ctx, broken, Tensor::from<std::int32_t>(stream, {3}, {1, 0, 0}), 0, &none);
  EXPECT_TRUE(std::isnan(none.to_vector(stream).at(0)));
  EXPECT_EQ(none.to_vector(stream).at(1), 0);
}

TEST_P(EveryDevice, SoftmaxLossSelectsFirstOfEqualScores) {
  Context ctx(GetParam());
  constexpr std::int64_t classes = 1000;
  std::vector<float> logits(2 * classes, -1);
  logits[700] = logits[900] = 5;                       // of the first row: 700 comes first
  logits[classes + 13] = 2, logits[classes + 14] = 3;  // of the second: 14
  const auto right = [&](std::int32_t first, std::int32_t second) {
    Tensor sums = Tensor::filled(*ctx.stream, {2}, 0);
    softmax_loss(ctx, Variable(Tensor::from<float>(*ctx.stream, {2, classes}, logits)),
                 Tensor::from<std::int32_t>(*ctx.stream, {2}, {first, second}), 0, &sums);
    return sums.to_vector(*ctx.stream).at(1);
  };
  EXPECT_EQ(right(700, 14), 2);
  EXPECT_EQ(right(900, 14), 1);
  EXPECT_EQ(right(0, 13), 0);
}

TEST(SoftmaxLoss, NamesInvalidLabel) {
  for (const std::int32_t label : {-1, 3, 1 << 30}) {
    try {
      Loss({}, {2, 3}, {0, 0, 0, 0, 0, 0}, {0, label});
      FAIL() << "label " << label << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_NE(std::string(error.what()).find(join("label ", label)), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("3 classes"), std::string::npos) << error.what();
    }
  }
}

TEST(SoftmaxLoss, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(Loss({}, {1, 2, 2, 1}, {0, 0, 0, 0}, {0}), Error);
  EXPECT_THROW(Loss({}, {2, 2}, {0, 0, 0, 0}, {0}), Error);
  Context ctx;
  const Variable logits(Tensor::filled(*ctx.stream, {2, 3}, 0));
  EXPECT_THROW(softmax_loss(ctx, logits, Tensor::filled(*ctx.stream, {2, 2}, 0.5f)), Error);
}

TEST_P(EveryDevice, SoftmaxGivesShares) {
  Context ctx(GetParam());
  const Tensor logits = Tensor::from<float>(*ctx.stream, {2, 2}, {0, std::log(3.0f), 1000, -1000});
  expect_close(softmax(*ctx.stream, logits).to_vector(*ctx.stream), {0.25f, 0.75f, 1, 0}, 1e-6f);
}

}  // namespace twiddle
