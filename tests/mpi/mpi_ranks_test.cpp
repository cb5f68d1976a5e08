#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "framework/ranks/communicator.h"

// mpirun starts three processes that run the same tests; ctest sees them as one test.
namespace twiddle {
namespace {

// MPI starts and ends once per process.
Communicator& ranks() {
  static const auto all = make_mpi_ranks();
  return *all;
}

TEST(MpiRanks, SumsFloats) {
  const auto stream = make_stream({});
  for (const std::size_t count : {std::size_t(1), std::size_t(1000), std::size_t(1) << 20}) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), static_cast<float>(ranks().rank()));
    ranks().all_reduce(*stream, values.data(), static_cast<std::int64_t>(count));
    const auto size = static_cast<float>(ranks().size());
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(values[i], size * (static_cast<float>(i) + (size - 1) / 2)) << i << " of " << count;
  }
}

// Thirds, of sizes for which MPI uses different sum algorithms.
TEST(MpiRanks, SumsAreBitwiseIdentical) {
  const auto stream = make_stream({});
  for (const std::size_t count : {std::size_t(3), std::size_t(5000), std::size_t(1) << 20}) {
    const auto sums = [&] {
      std::vector<float> values(count);
      for (std::size_t i = 0; i < count; ++i)
        values[i] = 1 / (3 + static_cast<float>((7 * i + static_cast<std::size_t>(ranks().rank())) % 1009));
      ranks().all_reduce(*stream, values.data(), static_cast<std::int64_t>(count));
      return values;
    };
    const std::vector<float> values = sums();
    EXPECT_EQ(sums(), values);
    const std::string bits(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    for (const std::string& of_rank : ranks().gather(bits)) EXPECT_TRUE(of_rank == bits);
  }
}

// Equals sum(), in two steps.
TEST(MpiRanks, ReduceScattersAndAllGathers) {
  const auto stream = make_stream({});
  for (const std::size_t shard : {std::size_t(1), std::size_t(500), std::size_t(1) << 19}) {
    const std::size_t count = shard * static_cast<std::size_t>(ranks().size());
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), static_cast<float>(ranks().rank()));
    std::vector<float> sums = values;
    ranks().all_reduce(*stream, sums.data(), static_cast<std::int64_t>(count));
    ranks().reduce_scatter(*stream, values.data(), static_cast<std::int64_t>(count));
    const std::size_t first = shard * static_cast<std::size_t>(ranks().rank());
    for (std::size_t i = 0; i < count; ++i)
      if (i < first || i >= first + shard) values[i] = -1;
    ranks().all_gather(*stream, values.data(), static_cast<std::int64_t>(count));
    EXPECT_EQ(values, sums);
  }
}

TEST(MpiRanks, GathersStringsOfAnyLength) {
  const auto text_of = [](int rank) { return std::string(static_cast<std::size_t>(1000 * rank), 'a') + '\0'; };
  const std::vector<std::string> texts = ranks().gather(text_of(ranks().rank()));
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(ranks().size()));
  for (int rank = 0; rank < ranks().size(); ++rank) EXPECT_EQ(texts[static_cast<std::size_t>(rank)], text_of(rank));
  EXPECT_EQ(ranks().gather(""), std::vector<std::string>(texts.size()));
}

// In parts; the longest string needs more parts than the others.
TEST(MpiRanks, GathersLongStringsInParts) {
  const auto text_of = [](int rank) {
    std::string text(std::size_t(15'000'000) * static_cast<std::size_t>(1 + rank), static_cast<char>('a' + rank));
    text.front() = '<', text.back() = '>';
    return text;
  };
  const std::vector<std::string> texts = ranks().gather(text_of(ranks().rank()));
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(ranks().size()));
  for (int rank = 0; rank < ranks().size(); ++rank)
    EXPECT_TRUE(texts[static_cast<std::size_t>(rank)] == text_of(rank)) << "of rank " << rank;
}

TEST(MpiRanks, ReportsWaitingTime) {
  ranks().barrier();  // all begin together
  if (ranks().rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  double waited = 0;
  ranks().while_waiting([&](double seconds) { waited = seconds; });
  ranks().barrier();
  ranks().while_waiting({});
  EXPECT_GT(waited, ranks().rank() == 0 ? 0.01 : -1);
}

TEST(MpiRanks, GathersOnSeparateChannel) {
  const std::optional<std::vector<std::string>> texts = ranks().gather_last("end", 60);
  ASSERT_TRUE(texts.has_value());
  EXPECT_EQ(*texts, std::vector<std::string>(static_cast<std::size_t>(ranks().size()), "end"));
}

}  // namespace
}  // namespace twiddle
