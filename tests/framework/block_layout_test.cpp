#include "framework/block_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace twiddle {
namespace {

std::size_t most_at_once(const std::vector<BlockUse>& uses) {
  std::size_t most = 0;
  for (const BlockUse& moment : uses) {
    std::size_t bytes = 0;
    for (const BlockUse& use : uses)
      if (use.taken <= moment.taken && moment.taken < use.returned) bytes += use.bytes;
    most = std::max(most, bytes);
  }
  return most;
}

void expect_apart(const std::vector<BlockUse>& uses, const BlockLayout& layout) {
  ASSERT_EQ(layout.offsets.size(), uses.size());
  for (std::size_t a = 0; a < uses.size(); ++a) {
    EXPECT_LE(layout.offsets[a] + uses[a].bytes, layout.bytes);
    for (std::size_t b = 0; b < a; ++b) {
      const bool apart = layout.offsets[a] + uses[a].bytes <= layout.offsets[b] ||
                         layout.offsets[b] + uses[b].bytes <= layout.offsets[a];
      EXPECT_TRUE(apart || !uses[a].meets(uses[b])) << "blocks " << a << " and " << b;
    }
  }
}

TEST(BlockLayout, NeedsNoMemoryWithoutBlocks) {
  EXPECT_EQ(lay_out({}).bytes, 0u);
}

TEST(BlockLayout, ReusesMemoryOfEndedBlocks) {
  EXPECT_EQ(lay_out({{512, 0, 1}, {1024, 2, 3}, {512, 4, 5}}).bytes, 1024u);
}

TEST(BlockLayout, SeparatesBlocksInUseTogether) {
  const BlockLayout layout = lay_out({{512, 0, 4}, {1024, 1, 3}});
  EXPECT_EQ(layout.bytes, 1536u);
  EXPECT_NE(layout.offsets[0], layout.offsets[1]);
}

// First come, first served would place the second block after the first, and the third after both.
TEST(BlockLayout, PlacesLargeBlockInFreedMemory) {
  const std::vector<BlockUse> uses{{512, 0, 2}, {512, 1, 10}, {2048, 3, 10}};
  const BlockLayout layout = lay_out(uses);
  expect_apart(uses, layout);
  EXPECT_EQ(layout.bytes, 2560u);
}

// Placing the last block first, as it has the largest product of bytes and duration, would leave no memory for the
// large short-lived block below the first.
TEST(BlockLayout, PlacesShortLivedBlockInGap) {
  const std::vector<BlockUse> uses{{512, 0, 4}, {2048, 2, 3}, {1536, 3, 5}};
  const BlockLayout layout = lay_out(uses);
  expect_apart(uses, layout);
  EXPECT_EQ(layout.bytes, 2560u);
}

TEST(BlockLayout, PacksRandomBlocksNearLowerBound) {
  std::mt19937 random(1);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  for (int round = 0; round < 20; ++round) {
    std::vector<BlockUse> uses;
    for (int i = 0; i < 100; ++i) {
      const int taken = below(200);
      uses.push_back({std::size_t(512) << below(10), taken, taken + 1 + below(100)});
    }
    const BlockLayout layout = lay_out(uses);
    expect_apart(uses, layout);
    EXPECT_LE(static_cast<double>(layout.bytes), 1.2 * static_cast<double>(most_at_once(uses)));
  }
}

}  // namespace
}  // namespace twiddle
