#include "framework/schedule.h"

#include <gtest/gtest.h>

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

TEST(Schedule, CosineFallsFromOneToItsFloor) {
  Schedule cosine = schedule(Kind::cosine);
  cosine.floor = 0.1;
  EXPECT_DOUBLE_EQ(cosine.factor(0, 10), 1);
  EXPECT_NEAR(cosine.factor(5, 10), 0.55, 1e-12);
  EXPECT_NEAR(cosine.factor(10, 10), 0.1, 1e-12);
}

TEST(Schedule, WarmUpRisesInAStraightLine) {
  Schedule cosine = schedule(Kind::cosine);
  cosine.warmup = 4;
  cosine.warmup_start = 0.2;
  EXPECT_DOUBLE_EQ(cosine.factor(0, 10), 0.2);
  EXPECT_DOUBLE_EQ(cosine.factor(2, 10), 0.6);
  EXPECT_DOUBLE_EQ(cosine.factor(4, 10), 1);
}

TEST(Schedule, SaysWhatItIs) {
  Schedule cosine = schedule(Kind::cosine);
  cosine.warmup = 5;
  EXPECT_EQ(cosine.describe(), "cosine, warm-up 5 epochs");
}

}  // namespace
}  // namespace twiddle
