#include "framework/optimizers/gradient_scale.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/config/params.h"
#include "framework/context.h"
#include "framework/parameter.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

// Two weights {1, -2} that an optimizer without options updates at rate 1.
struct ScaledUpdate {
  Context ctx;
  Parameter parameter;
  std::vector<Parameter*> parameters{&parameter};
  std::unique_ptr<Optimizer> optimizer;
  GradientScale scale;
  Tensor run_guard = Tensor::filled(*ctx.stream, {1}, 3), found_bad = Tensor::filled(*ctx.stream, {1}, 0);
  LossSums losses{Tensor::filled(*ctx.stream, {2}, 0), Tensor::filled(*ctx.stream, {2}, 3),
                  Tensor::filled(*ctx.stream, {1}, 8)};

  ScaledUpdate(const Device& device, double clip_norm, const LossScale& loss_scale = {}, const char* kind = "sgd")
      : ctx(device), scale(*ctx.stream, clip_norm, loss_scale) {
    Diagnostics diagnostics;
    const ConfigNode none;
    Params params(none, kind, diagnostics);
    optimizer = builtin_optimizers().make(kind, params);
    parameter.name = "w";
    parameter.shape = {2};
    parameter.variable.value() = Tensor::from<float>(*ctx.stream, {2}, {1, -2});
  }

  std::vector<float> update(const std::vector<float>& gradient) {
    Stream& stream = *ctx.stream;
    parameter.variable.grad() = Tensor::from(stream, {2}, gradient);
    const StepNumbers numbers{Tensor::filled(stream, {1}, 1), run_guard, found_bad};
    optimizer->step(ctx, parameters, scale.begin_update(stream, gradient_norm(stream, parameters), numbers, &losses));
    return parameter.variable.value().to_vector(stream);
  }
  bool is_bad() { return std::isnan(found_bad.to_vector(*ctx.stream).at(0)); }
};

constexpr float infinity = INFINITY;
const std::vector<float> untouched{1, -2};

}  // namespace

TEST_P(EveryDevice, GradientScaleClipsToLimit) {
  const auto moved = [](const std::vector<float>& weights, float first, float second) {
    EXPECT_NEAR(weights.at(0), 1 - first, 1e-6);
    EXPECT_NEAR(weights.at(1), -2 - second, 1e-6);
  };
  moved(ScaledUpdate(GetParam(), 10).update({3, 4}), 3, 4);
  moved(ScaledUpdate(GetParam(), 1).update({3, 4}), 0.6f, 0.8f);
  moved(ScaledUpdate(GetParam(), 1).update({3e30f, -4e30f}), 0.6f, -0.8f);                       // squares overflow
  moved(ScaledUpdate(GetParam(), 1, {.value = 1024}).update({3 * 1024, 4 * 1024}), 0.6f, 0.8f);  // of true gradients
}

TEST_P(EveryDevice, GradientScaleDividesByLossScale) {
  ScaledUpdate plain(GetParam(), 0), scaled(GetParam(), 0, {.value = 65536});
  EXPECT_EQ(scaled.update({0.3f * 65536, 0.7f * 65536}), plain.update({0.3f, 0.7f}));
}

TEST_P(EveryDevice, GradientScaleEndsRunAtNonFiniteNorm) {
  for (const char* kind : {"sgd", "adam"}) {
    for (const double fixed_scale : {1, 1024}) {
      ScaledUpdate update(GetParam(), 1, {.value = fixed_scale}, kind);
      EXPECT_EQ(update.update({infinity, 1}), untouched);
      EXPECT_TRUE(update.is_bad());
    }
  }
}

TEST_P(EveryDevice, GradientScaleSkipsStepAndHalves) {
  for (const char* kind : {"sgd", "adam"}) {
    ScaledUpdate update(GetParam(), 0, {.value = 4, .adapts = true, .good_steps = 7}, kind),
        plain(GetParam(), 0, {}, kind);
    Stream& stream = *update.ctx.stream;
    EXPECT_EQ(update.update({infinity, 1}), untouched);
    EXPECT_EQ(update.update({1, NAN}), untouched);
    EXPECT_FALSE(update.is_bad());
    const LossScale now = update.scale.read(stream);
    EXPECT_EQ(now.value, 1);
    EXPECT_EQ(now.good_steps, 0);
    EXPECT_EQ(now.skipped_steps, 2);
    EXPECT_EQ(update.scale.loss_scale().to_vector(stream).at(0), 1);
    EXPECT_EQ(update.update({0.5f, 0.25f}), plain.update({0.5f, 0.25f})) << "a skipped step left a trace in " << kind;
    const std::vector<float> before = update.update({0.5f, 0.25f});
    EXPECT_EQ(update.update({infinity, 1}), before);
    EXPECT_TRUE(update.is_bad()) << "at a scale of 1";
  }
}

// As of binary cross entropy, whose gradient is finite where its loss is not.
TEST_P(EveryDevice, GradientScaleSkipsStepWithBadLoss) {
  ScaledUpdate update(GetParam(), 0, {.value = 4, .adapts = true});
  Stream& stream = *update.ctx.stream;
  update.losses.of_update = Tensor::from<float>(stream, {2}, {infinity, 5});
  EXPECT_EQ(update.update({1, 1}), untouched);
  const LossScale now = update.scale.read(stream);
  EXPECT_EQ(now.value, 2);
  EXPECT_EQ(now.skipped_steps, 1);
  EXPECT_EQ(now.left_out, 8);
  EXPECT_EQ(update.losses.of_epoch.to_vector(stream), (std::vector<float>{3, 8}));
  EXPECT_EQ(update.losses.of_update.to_vector(stream), (std::vector<float>{0, 0}));
  update.scale.begin_epoch(stream);
  EXPECT_EQ(update.scale.read(stream).left_out, 0);
}

// A run that had another kind of scale before may have counted further.
TEST_P(EveryDevice, GradientScaleDoublesAfterMoreThanPeriod) {
  ScaledUpdate update(GetParam(), 0, {4, true, LossScale::period + 100}), fixed(GetParam(), 0, {.value = 4});
  update.update({0, 0}), fixed.update({0, 0});
  EXPECT_EQ(update.scale.read(*update.ctx.stream).value, 8);
  EXPECT_EQ(fixed.scale.read(*fixed.ctx.stream).good_steps, 0);
}

TEST_P(EveryDevice, GradientScaleDoublesAfterPeriod) {
  ScaledUpdate update(GetParam(), 0, {LossScale::largest / 2, true, LossScale::period - 2});
  std::vector<double> values;
  for (int i = 0; i < 2; ++i) {
    update.update({0, 0});
    values.push_back(update.scale.read(*update.ctx.stream).value);
  }
  EXPECT_EQ(values, (std::vector<double>{LossScale::largest / 2, LossScale::largest}));
  for (int i = 0; i < LossScale::period; ++i) update.update({0, 0});
  EXPECT_EQ(update.scale.read(*update.ctx.stream).value, LossScale::largest);
}

TEST_P(EveryDevice, GradientScaleChangesNothingAfterBadStep) {
  ScaledUpdate update(GetParam(), 0, {.value = 4, .adapts = true});
  update.run_guard = Tensor::filled(*update.ctx.stream, {1}, NAN);
  EXPECT_EQ(update.update({1, 1}), untouched);
  EXPECT_EQ(update.update({infinity, 1}), untouched);
  const LossScale now = update.scale.read(*update.ctx.stream);
  EXPECT_EQ(now.value, 4);
  EXPECT_EQ(now.good_steps, 0);
}

}  // namespace twiddle
