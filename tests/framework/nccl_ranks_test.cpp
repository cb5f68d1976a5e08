// NCCL's communicator on two GPUs, each a rank in a thread of this process.
#include <gtest/gtest.h>

#include <exception>
#include <limits>
#include <thread>

#include "framework/context.h"
#include "framework/error.h"
#include "framework/ranks/communicator.h"
#include "framework/tensor.h"
#include "framework/tensor_ops.h"

namespace twiddle {
namespace {

class NcclOnTwoGpus : public testing::Test {
 protected:
  static constexpr int size = 2;
  void SetUp() override {
    if (cuda_device_count() < size) GTEST_SKIP() << "fewer than two GPUs";
  }
  // Reports what a rank throws.
  static void on_gpus(const std::function<void(Communicator& ranks, Stream& stream)>& work) {
    const int port = free_port();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          const Device device{Device::Kind::cuda, rank};
          const auto ranks = make_nccl_ranks({rank, size, rank, "a test", {"127.0.0.1", port}});
          ranks->use(device);
          const auto stream = make_stream(device);
          work(*ranks, *stream);
          ranks->barrier();
        } catch (const Error& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
};

// Values of rank r, as floats whose sums of two do not depend on the order.
std::vector<float> values_of(int rank, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 1 / (3 + static_cast<float>((7 * i + static_cast<std::size_t>(rank)) % 1009));
  return values;
}

std::vector<float> sum_of_both(std::int64_t count) {
  std::vector<float> sum = values_of(0, count);
  const std::vector<float> other = values_of(1, count);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
  return sum;
}

Tensor values_on(Stream& stream, const Communicator& ranks, std::int64_t count) {
  return Tensor::from(stream, {count}, values_of(ranks.rank(), count));
}

std::vector<float> shard_of(const std::vector<float>& values, int rank) {
  const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
  return {values.begin() + rank * half, values.begin() + (rank + 1) * half};
}

constexpr std::int64_t counts[] = {2, 1000, std::int64_t(1) << 20, 9999998};

TEST_F(NcclOnTwoGpus, Sums) {
  on_gpus([](Communicator& ranks, Stream& stream) {
    for (const std::int64_t count : counts) {
      Tensor values = values_on(stream, ranks, count);
      ranks.all_reduce(stream, values.write(), count);
      EXPECT_EQ(values.to_vector(stream), sum_of_both(count)) << count;
    }
  });
}

TEST_F(NcclOnTwoGpus, ReduceScattersAndAllGathers) {
  on_gpus([](Communicator& ranks, Stream& stream) {
    for (const std::int64_t count : counts) {
      Tensor values = values_on(stream, ranks, count);
      ranks.reduce_scatter(stream, values.write(), count);
      EXPECT_EQ(shard_of(values.to_vector(stream), ranks.rank()), shard_of(sum_of_both(count), ranks.rank())) << count;
      ranks.all_gather(stream, values.write(), count);
      EXPECT_EQ(values.to_vector(stream), sum_of_both(count)) << count;
    }
  });
}

// Memory that the ranks allocate uses another path.
TEST_F(NcclOnTwoGpus, SumsRegisteredMemory) {
  on_gpus([](Communicator& ranks, Stream& stream) {
    constexpr std::int64_t count = std::int64_t(32) * 100003;
    const Tensor given = values_on(stream, ranks, count);
    Tensor values = Tensor::over(stream.device(), {count}, ranks.allocate(stream, count));
    const auto work = [&] {
      stream.copy(values.write(), given.read(), given.bytes());
      stream.wait_event(*ranks.begin_reduce_scatter(stream, values.write(), count));
      stream.wait_event(*ranks.begin_all_gather(stream, values.write(), count));
    };
    work();
    EXPECT_EQ(values.to_vector(stream), sum_of_both(count));
    const std::unique_ptr<Graph> graph = stream.capture(work);
    ASSERT_NE(graph, nullptr);
    for (int play = 0; play < 20; ++play) {
      stream.fill(values.write(), count, std::numeric_limits<float>::quiet_NaN());
      graph->replay();
    }
    EXPECT_EQ(values.to_vector(stream), sum_of_both(count));
  });
}

// Replays a graph of reduce-scatter and all-gather repeatedly while other work runs.
TEST_F(NcclOnTwoGpus, SumsInsideCapturedGraph) {
  on_gpus([](Communicator& ranks, Stream& stream) {
    constexpr std::int64_t count = std::int64_t(1) << 20;
    const Tensor given = values_on(stream, ranks, count);
    Tensor values(stream, {count}), twice(stream, {count});
    const auto work = [&] {
      stream.copy(values.write(), given.read(), given.bytes());
      const auto summed = ranks.begin_reduce_scatter(stream, values.write(), count);
      add(stream, given, given, twice);
      if (summed) stream.wait_event(*summed);
      add(stream, values, values, values);
      const auto gathered = ranks.begin_all_gather(stream, values.write(), count);
      if (gathered) stream.wait_event(*gathered);
    };
    work();
    const std::unique_ptr<Graph> graph = stream.capture(work);
    ASSERT_NE(graph, nullptr);
    std::vector<float> expected = sum_of_both(count);
    for (float& value : expected) value *= 2;
    for (int play = 0; play < 20; ++play) {
      stream.fill(values.write(), count, std::numeric_limits<float>::quiet_NaN());
      graph->replay();
    }
    EXPECT_EQ(values.to_vector(stream), expected);
  });
}

TEST_F(NcclOnTwoGpus, RefusesTwoRanksOnOneGpu) {
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([port, rank] {
      const auto ranks = make_nccl_ranks({rank, size, rank, "a test", {"127.0.0.1", port}});
      try {
        ranks->use({Device::Kind::cuda, 0});
        ADD_FAILURE() << "rank " << rank << " was not refused";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("ranks 0 and 1 on "), std::string::npos) << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace twiddle
