#include "framework/pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "framework/error.h"

namespace twiddle {
namespace {

constexpr std::size_t mib = 1 << 20;

// A pool over malloc that counts, and that allocates at most `limit` bytes.
struct CountingPool {
  int allocated = 0, freed = 0;
  std::size_t limit = SIZE_MAX;
  Pool pool{[this](std::size_t bytes) -> void* {
              if (bytes > limit) return nullptr;
              ++allocated;
              return std::malloc(bytes);
            },
            [this](void* block) {
              ++freed;
              std::free(block);
            }};

  // Records the blocks that `work` takes.
  template <class Work>
  void trial_run(const Work& work) {
    pool.start_holding();
    work();
    pool.stop_holding();
  }
};

TEST(Pool, ReusesFreedBlock) {
  CountingPool counting;
  void* const first = counting.pool.take(5000).get();
  EXPECT_EQ(counting.pool.take(4000).get(), first);
  EXPECT_EQ(counting.allocated, 1);
}

TEST(Pool, KeepsLargeBlockFromSmallRequest) {
  CountingPool counting;
  counting.pool.take(1 << 20);
  counting.pool.take(1000);
  EXPECT_EQ(counting.allocated, 2);
}

TEST(Pool, SplitsAndMergesBlocks) {
  CountingPool counting;
  void* const whole = counting.pool.take(10 * mib).get();
  {
    const auto first = counting.pool.take(4 * mib), second = counting.pool.take(3 * mib),
               third = counting.pool.take(3 * mib);
    EXPECT_EQ(first.get(), whole);
    EXPECT_EQ(second.get(), static_cast<char*>(whole) + 4 * mib);
    EXPECT_EQ(counting.pool.use().in_use, 10 * mib);
    EXPECT_EQ(counting.pool.use().cached, 0u);
  }
  EXPECT_EQ(counting.pool.take(10 * mib).get(), whole);
  EXPECT_EQ(counting.allocated, 1);
  counting.pool.release_cached();
  EXPECT_EQ(counting.freed, 1);
}

TEST(Pool, KeepsSegmentPartlyInUse) {
  CountingPool counting;
  counting.pool.take(10 * mib);
  const auto part = counting.pool.take(4 * mib);
  counting.pool.release_cached();
  EXPECT_EQ(counting.freed, 0);
  EXPECT_EQ(counting.pool.use().cached, 6 * mib);
}

TEST(Pool, DoesNotReuseHeldBlocks) {
  CountingPool counting;
  counting.pool.take(2 * mib);
  counting.pool.start_holding();
  void* const first = counting.pool.take(2 * mib).get();
  void* const small = counting.pool.take(100).get();
  auto held = counting.pool.stop_holding();
  EXPECT_EQ(held.size(), 2u);
  EXPECT_NE(counting.pool.take(2 * mib).get(), first);
  EXPECT_NE(counting.pool.take(100).get(), small);
  held.clear();
  EXPECT_EQ(counting.pool.use().in_use, 0u);
}

TEST(Pool, HoldsBlockBeyondItsOwner) {
  CountingPool counting;
  counting.pool.start_holding();
  auto kept = counting.pool.take(100);
  void* const place = kept.get();
  const auto held = counting.pool.stop_holding();
  kept.reset();
  EXPECT_NE(counting.pool.take(100).get(), place);
}

// Takes two blocks in succession, then one that fits into neither's memory.
void small_then_large(Pool& pool) {
  pool.take(2 * mib), pool.take(3 * mib);
  const auto first = pool.take(1 * mib), second = pool.take(4 * mib);
}

TEST(Pool, ReplaysRecordedBlocksInOneAllocation) {
  CountingPool counting;
  counting.trial_run([&] { small_then_large(counting.pool); });
  counting.pool.release_cached();

  counting.allocated = 0;
  counting.pool.start_holding(Pool::Holding::before);
  EXPECT_EQ(counting.pool.use().in_use, 5 * mib);
  small_then_large(counting.pool);
  EXPECT_EQ(counting.allocated, 1);
  const auto held = counting.pool.stop_holding();
  EXPECT_EQ(held.size(), 1u);
  EXPECT_EQ(counting.pool.use().in_use, 5 * mib);
}

// A block may be larger than requested.
TEST(Pool, ReplaysBlocksThatWereLarger) {
  CountingPool counting;
  counting.pool.take(1000), counting.pool.take(2 * mib);
  const auto twice = [&] { counting.pool.take(600), counting.pool.take(mib + mib / 2); };
  counting.trial_run(twice);
  counting.pool.start_holding(Pool::Holding::before);
  twice();
  EXPECT_EQ(counting.pool.stop_holding().size(), 1u) << "the piece and no other";
}

TEST(Pool, AllocatesNothingIfRecordIsEmpty) {
  CountingPool counting;
  counting.trial_run([] {});
  counting.pool.start_holding(Pool::Holding::before);
  EXPECT_TRUE(counting.pool.stop_holding().empty());
  EXPECT_EQ(counting.allocated, 0);
}

TEST(Pool, AllocatesIfReplayDiffers) {
  CountingPool counting;
  counting.trial_run([&] { small_then_large(counting.pool); });

  counting.pool.start_holding(Pool::Holding::before);
  const auto as_before = counting.pool.take(2 * mib), other = counting.pool.take(8 * mib);
  EXPECT_GE(std::abs(static_cast<char*>(other.get()) - static_cast<char*>(as_before.get())), 2 * mib);
  const auto held = counting.pool.stop_holding();
  EXPECT_EQ(held.size(), 2u) << "the piece and the other";
}

TEST(Pool, DoesNotReuseBlockHeldLonger) {
  CountingPool counting;
  counting.trial_run([&] { small_then_large(counting.pool); });

  counting.pool.start_holding(Pool::Holding::before);
  const auto kept = counting.pool.take(2 * mib), next = counting.pool.take(3 * mib);
  EXPECT_GE(std::abs(static_cast<char*>(next.get()) - static_cast<char*>(kept.get())), 2 * mib);
  counting.pool.stop_holding();
}

TEST(Pool, AllocatesSeparatelyIfOutOfMemory) {
  CountingPool counting;
  counting.trial_run([&] { small_then_large(counting.pool); });
  counting.pool.release_cached();

  counting.limit = 4 * mib;
  counting.pool.start_holding(Pool::Holding::before);
  EXPECT_NO_THROW(small_then_large(counting.pool));
  counting.pool.stop_holding();
}

TEST(Pool, ReusesPieceWhileHeld) {
  CountingPool counting;
  counting.trial_run([&] { small_then_large(counting.pool); });
  const auto place_of_a_block = [&](Pool::Holding as, std::vector<std::shared_ptr<void>>& held) {
    counting.pool.start_holding(as);
    void* const place = counting.pool.take(2 * mib).get();
    held = counting.pool.stop_holding();
    return place;
  };
  std::vector<std::shared_ptr<void>> first, second, none;
  void* const place = place_of_a_block(Pool::Holding::before, first);
  const std::size_t in_use = counting.pool.use().in_use;
  EXPECT_EQ(place_of_a_block(Pool::Holding::again, second), place);
  EXPECT_EQ(counting.pool.use().in_use, in_use);
  first.clear();
  EXPECT_EQ(counting.pool.use().in_use, in_use) << "kept by the second";
  second.clear();
  EXPECT_EQ(counting.pool.use().in_use, 0u);
  place_of_a_block(Pool::Holding::again, none);
  EXPECT_FALSE(none.empty()) << "an ordinary block";
}

// A graph replays in the memory it took, which must not be freed before stop_holding() has returned it.
TEST(Pool, KeepsHeldBlocksWithoutMemory) {
  CountingPool counting;
  counting.trial_run([&] { counting.pool.take(3 * mib), counting.pool.take(8 * mib); });
  counting.pool.release_cached();

  counting.limit = 4 * mib;
  counting.freed = 0;
  counting.pool.start_holding(Pool::Holding::before);
  counting.pool.take(3 * mib);
  EXPECT_THROW(counting.pool.take(8 * mib), OutOfMemory);
  EXPECT_EQ(counting.freed, 0);
  EXPECT_EQ(counting.pool.stop_holding().size(), 1u);
}

TEST(Pool, CountsBytesInUse) {
  CountingPool counting;
  {
    const auto block = counting.pool.take(1024);
    EXPECT_EQ(counting.pool.use().in_use, 1024u);
    EXPECT_EQ(counting.pool.use().cached, 0u);
  }
  EXPECT_EQ(counting.pool.use().in_use, 0u);
  EXPECT_EQ(counting.pool.use().cached, 1024u);
  EXPECT_EQ(counting.pool.use().peak, 1024u);
  counting.pool.reset_peak();
  EXPECT_EQ(counting.pool.use().peak, 0u);
  counting.pool.release_cached();
  EXPECT_EQ(counting.freed, 1);
}

TEST(Pool, OutOfMemoryErrorReportsUse) {
  CountingPool counting;
  counting.limit = 1 << 20;
  const auto held = counting.pool.take(1 << 20);
  try {
    counting.pool.take(64 << 20);
    FAIL() << "64 MiB came out of a pool that has 1 MiB";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_NE(std::string(error.what()).find("1 MiB in use"), std::string::npos) << error.what();
  }
}

TEST(Pool, BlocksMayOutliveThePool) {
  std::shared_ptr<void> block;
  int freed = 0;
  {
    Pool pool([](std::size_t bytes) { return std::malloc(bytes); },
              [&freed](void* returned) {
                ++freed;
                std::free(returned);
              });
    block = pool.take(100);
  }
  EXPECT_EQ(freed, 0);
  block.reset();
  EXPECT_EQ(freed, 1);
}

// A pool whose large blocks are parts of one address range.
struct PoolOfPieces {
  std::size_t granularity = 4096;
  std::size_t size = 256 * mib;
  std::unique_ptr<char, void (*)(void*)> range{static_cast<char*>(std::aligned_alloc(32 * mib, size)), std::free};
  std::size_t used = 0;
  Pool pool{[](std::size_t bytes) { return std::malloc(bytes); }, [](void* block) { std::free(block); },
            Pool::Pieces{[this](void* at, std::size_t bytes) -> void* {
                           char* const begin = at == nullptr ? range.get() : static_cast<char*>(at);
                           if (begin + bytes > range.get() + size) return nullptr;
                           used += bytes;
                           return begin;
                         },
                         [this](void* begin, std::size_t bytes) {
                           EXPECT_EQ((static_cast<char*>(begin) - range.get()) % granularity, 0u);
                           EXPECT_EQ(bytes % granularity, 0u);
                           used -= bytes;
                         },
                         granularity}};
};

TEST(PoolOfPieces, JoinsNeighboringPieces) {
  PoolOfPieces memory;
  auto a = memory.pool.take(4 * mib), b = memory.pool.take(3 * mib), c = memory.pool.take(2 * mib);
  void* const first = a.get();
  a.reset(), b.reset();
  EXPECT_EQ(memory.pool.take(7 * mib).get(), first);
  EXPECT_EQ(memory.used, 9 * mib);
}

TEST(PoolOfPieces, RequestsOnlyMissingBytes) {
  PoolOfPieces memory;
  auto a = memory.pool.take(4 * mib), b = memory.pool.take(3 * mib);
  void* const second = b.get();
  b.reset();
  EXPECT_EQ(memory.pool.take(8 * mib).get(), second);
  EXPECT_EQ(memory.used, 12 * mib);
}

TEST(PoolOfPieces, FreesUnusedBlocksBetweenOthers) {
  PoolOfPieces memory;
  auto a = memory.pool.take(4 * mib), b = memory.pool.take(3 * mib), c = memory.pool.take(2 * mib);
  b.reset();
  memory.pool.release_cached();
  EXPECT_EQ(memory.used, 6 * mib);
  EXPECT_EQ(memory.pool.use().cached, 0u);
  a.reset(), c.reset();
  memory.pool.release_cached();
  EXPECT_EQ(memory.used, 0u);
}

TEST(PoolOfPieces, ReusesAddressesOfFreedBlocks) {
  PoolOfPieces memory;
  auto a = memory.pool.take(4 * mib), b = memory.pool.take(3 * mib), c = memory.pool.take(2 * mib);
  void *const first = a.get(), *const second = b.get();
  b.reset();
  memory.pool.release_cached();
  b = memory.pool.take(2 * mib);
  EXPECT_EQ(b.get(), second);
  a.reset();
  memory.pool.release_cached();
  EXPECT_EQ(memory.pool.take(3 * mib).get(), first);
}

TEST(PoolOfPieces, FreesFragmentsBeforeItGrowsFurther) {
  PoolOfPieces memory;
  std::vector<std::shared_ptr<void>> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(memory.pool.take(4 * mib));
  for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
  blocks.push_back(memory.pool.take(30 * mib));
  EXPECT_EQ(memory.used, 94 * mib);  // four fragments less than 110: below 4 MiB and 9/8 of the 80 that were in use
  blocks.push_back(memory.pool.take(20 * mib));
  EXPECT_EQ(memory.used, 102 * mib);  // three fragments less than 114: below 4 MiB and 9/8 of 90
}

TEST(PoolOfPieces, RequestsAndSplitsWholeGranules) {
  PoolOfPieces memory{.granularity = 16 * mib};
  auto a = memory.pool.take(10 * mib), b = memory.pool.take(6 * mib);
  EXPECT_EQ(memory.used, 16 * mib);
  EXPECT_EQ(b.get(), static_cast<char*>(a.get()) + 10 * mib);
  auto c = memory.pool.take(20 * mib), d = memory.pool.take(15 * mib);
  EXPECT_EQ(memory.used, 64 * mib);
  EXPECT_EQ(memory.pool.use().in_use, 51 * mib);
  EXPECT_EQ(memory.pool.use().cached, 13 * mib);
}

TEST(PoolOfPieces, FreesOnlyWholeGranules) {
  PoolOfPieces memory{.granularity = 16 * mib};
  auto a = memory.pool.take(10 * mib), b = memory.pool.take(40 * mib), c = memory.pool.take(10 * mib);
  void* const second = b.get();
  EXPECT_EQ(memory.used, 64 * mib);
  b.reset();
  memory.pool.release_cached();
  EXPECT_EQ(memory.used, 32 * mib);  // 16 to 48 of 64 MiB are freed
  EXPECT_EQ(memory.pool.use().cached, 12 * mib);
  b = memory.pool.take(38 * mib);
  EXPECT_EQ(b.get(), second);
  EXPECT_EQ(memory.used, 64 * mib);
  a.reset(), b.reset(), c.reset();
  memory.pool.release_cached();
  EXPECT_EQ(memory.used, 0u);
  EXPECT_EQ(memory.pool.use().cached, 0u);
}

TEST(PoolOfPieces, KeepsSmallBlocksApart) {
  PoolOfPieces memory;
  const auto small = memory.pool.take(1000);
  EXPECT_EQ(memory.used, 0u);
}

}  // namespace
}  // namespace twiddle
