#include "framework/random.h"

#include <gtest/gtest.h>

#include <set>

namespace twiddle {
namespace {

constexpr std::int64_t draws = 200000;

TEST(RandomSequence, DependsOnlyOnPosition) {
  const RandomSequence all{7, 0}, later{7, 100};
  for (std::int64_t i = 0; i < 50; ++i) EXPECT_EQ(later.bits(i), all.bits(100 + i));
}

TEST(RandomSequence, UniformHasItsMomentsAndRange) {
  const RandomSequence random{1, 0};
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < draws; ++i) {
    const double value = random.uniform(i);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 1);
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / draws, 1.0 / 2, 0.003);  // deviation of the mean: 0.0006
  EXPECT_NEAR(squares / draws, 1.0 / 3, 0.003);
}

TEST(RandomSequence, NormalHasItsMoments) {
  const RandomSequence random{2, 0};
  double sum = 0, squares = 0, fourth = 0;
  for (std::int64_t i = 0; i < draws; ++i) {
    const double value = random.normal(i);
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  EXPECT_NEAR(sum / draws, 0, 0.012);
  EXPECT_NEAR(squares / draws, 1, 0.02);
  EXPECT_NEAR(fourth / draws, 3, 0.15);
}

TEST(RandomSequence, BelowReachesExactlyItsRange) {
  const RandomSequence random{3, 0};
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) seen.insert(random.below(i, 7));
  EXPECT_EQ(seen, (std::set<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(RandomSequence, SeedsAndBranchesDiffer) {
  const RandomSequence a{1, 0}, b{2, 0};
  std::set<std::uint64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) {
    seen.insert({a.bits(i), b.bits(i), a.split(0).bits(i), a.split(1).bits(i), a.split(0).split(1).bits(i)});
  }
  EXPECT_EQ(seen.size(), 5000u);
}

TEST(Random, RestoresPosition) {
  Random random(9);
  const std::uint64_t first = random.take(10).bits(0);
  const std::uint64_t position = random.position();
  const std::uint64_t second = random.take(5).bits(0);
  EXPECT_NE(first, second);
  random.restore(9, position);
  EXPECT_EQ(random.take(5).bits(0), second);
}

// Rows 2 and 3 of five, ten values each.
TEST(Random, RowsAreIndependentOfRanks) {
  Random whole(9), shared(9);
  whole.take(3), shared.take(3);
  const RandomSequence all = whole.take_rows(5, 10);
  shared.share_rows(2, 5);
  EXPECT_EQ(shared.take_rows(2, 10).bits(7), all.bits(27));
  EXPECT_EQ(shared.position(), whole.position());
}

}  // namespace
}  // namespace twiddle
