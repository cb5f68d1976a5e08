#include "framework/optimizers/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace twiddle {
namespace {

using Kind = Schedule::Kind;

Schedule schedule(Kind kind) {
  Schedule made;
  made.kind = kind;
  return made;
}

TEST(Schedule, ConstantStays) {
  EXPECT_EQ(schedule(Kind::constant).factor(17, 90), 1);
}

TEST(Schedule, StepDropsEveryFewEpochs) {
  Schedule step = schedule(Kind::step);
  step.every = 30;
  EXPECT_DOUBLE_EQ(step.factor(29.99, 90), 1);
  EXPECT_DOUBLE_EQ(step.factor(30, 90), 0.1);
  EXPECT_NEAR(step.factor(60, 90), 0.01, 1e-12);
}

TEST(Schedule, MultistepDropsAtMilestones) {
  Schedule multistep = schedule(Kind::multistep);
  multistep.milestones = {2, 5};
  multistep.gamma = 0.5;
  EXPECT_DOUBLE_EQ(multistep.factor(1.9, 10), 1);
  EXPECT_DOUBLE_EQ(multistep.factor(2, 10), 0.5);
  EXPECT_DOUBLE_EQ(multistep.factor(9, 10), 0.25);
}

TEST(Schedule, PolyReachesItsFloor) {
  Schedule poly = schedule(Kind::poly);
  poly.power = 2;
  EXPECT_DOUBLE_EQ(poly.factor(5, 10), 0.25);
  EXPECT_DOUBLE_EQ(poly.factor(10, 10), 0);
}

TEST(Schedule, ExponentialPerEpoch) {
  Schedule exponential = schedule(Kind::exponential);
  exponential.gamma = 0.5;
  EXPECT_DOUBLE_EQ(exponential.factor(3, 10), 0.125);
}

TEST(Schedule, CosineFallsToItsFloor) {
  Schedule cosine = schedule(Kind::cosine);
  cosine.floor = 0.1;
  EXPECT_DOUBLE_EQ(cosine.factor(0, 10), 1);
  EXPECT_NEAR(cosine.factor(5, 10), 0.55, 1e-12);
  EXPECT_NEAR(cosine.factor(10, 10), 0.1, 1e-12);
}

TEST(Schedule, WarmUpRisesLinearly) {
  Schedule cosine = schedule(Kind::cosine);
  cosine.warmup = 4;
  cosine.warmup_start = 0.2;
  EXPECT_DOUBLE_EQ(cosine.factor(0, 10), 0.2);
  EXPECT_DOUBLE_EQ(cosine.factor(2, 10), 0.6);
  EXPECT_DOUBLE_EQ(cosine.factor(4, 10), 1);
}

TEST(Schedule, WarmUpStartsAboveZero) {
  Schedule constant = schedule(Kind::constant);
  constant.warmup = 2;
  EXPECT_DOUBLE_EQ(constant.factor(0, 3), 0.01);
  EXPECT_DOUBLE_EQ(constant.factor(1, 3), 0.505);
}

// Steps and milestones count epochs from the start of training, including the warm-up; cosine, poly and exponential
// start after it.
TEST(Schedule, StepsCountEpochsOfWarmUp) {
  Schedule step = schedule(Kind::step);
  step.every = 2;
  step.warmup = 5;
  EXPECT_NEAR(step.factor(4.999, 10), 1, 1e-3);
  EXPECT_NEAR(step.factor(5, 10), 0.01, 1e-12);
  for (const Kind kind : {Kind::cosine, Kind::poly, Kind::exponential}) {
    Schedule smooth = schedule(kind);
    smooth.warmup = 5;
    for (const double epoch : {0.0, 2.5, 4.999, 5.0, 5.001, 9.0}) EXPECT_LE(smooth.factor(epoch, 10), 1);
    EXPECT_DOUBLE_EQ(smooth.factor(5, 10), 1);
  }
}

// The last step's rate is one step above the floor, since a rate is taken at the start of its step.
TEST(Schedule, CosineWithWarmUpReachesFloor) {
  Schedule cosine = schedule(Kind::cosine);
  cosine.warmup = 2, cosine.floor = 0.1;
  constexpr double steps = 50, epochs = 10;  // steps of an epoch
  EXPECT_NEAR(cosine.factor(epochs - 1 / steps, epochs),
              0.1 + 0.9 * (1 + std::cos(3.141592653589793 * (1 - 1 / (steps * (epochs - 2))))) / 2, 1e-12);
}

TEST(Schedule, DescribesItself) {
  Schedule cosine = schedule(Kind::cosine);
  cosine.warmup = 5;
  EXPECT_EQ(cosine.describe(), "cosine, warm-up 5 epochs");
}

}  // namespace
}  // namespace twiddle
