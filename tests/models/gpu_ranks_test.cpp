#include <gtest/gtest.h>

#include <cmath>

#include "tests/models/small_training.h"
#include "tests/support/gpu_thread_ranks.h"
#include "tests/support/on_gpu.h"

// What ranks compute on a GPU between collectives: updates of shards, gradients in their buckets, statistics of all
// rows. Here they are threads on one GPU and synchronize on the host.
namespace twiddle {
namespace {

std::vector<std::vector<float>> train_on_gpu(int size, const std::vector<Override>& overrides) {
  std::vector<std::vector<float>> result;
  on_ranks(size, [&](const std::shared_ptr<Communicator>& thread) {
    std::vector<Override> all = overrides;
    all.insert(all.end(), {{"device", "cuda", "--device"}, {"data.workers", "1", "--workers"}});
    Trainer::Options options;
    options.ranks = std::make_shared<GpuThreadRank>(thread);
    options.capture = false;  // collectives on the host cannot be captured
    Trainer trainer(small_experiment(all), options);
    const std::atomic<bool> stop = false;
    trainer.run({}, stop);
    if (thread->rank() == 0) result = weights(trainer);
  });
  return result;
}

// Differences are relative to the largest value of each tensor.
void expect_as_one_on_gpu(const std::vector<Override>& overrides, float bound = 1e-5F) {
  const auto one = train_on_gpu(1, overrides);
  for (const int size : {2, 4}) {
    const auto several = train_on_gpu(size, overrides);
    ASSERT_EQ(several.size(), one.size());
    for (std::size_t tensor = 0; tensor < one.size(); ++tensor) {
      float most = 0, largest = 0;
      for (std::size_t i = 0; i < one[tensor].size(); ++i) {
        most = std::max(most, std::abs(several[tensor][i] - one[tensor][i]));
        largest = std::max(largest, std::abs(one[tensor][i]));
      }
      EXPECT_LE(most, bound * largest) << "tensor " << tensor << " on " << size;
    }
  }
}

using GpuRanks = OnGpu;

TEST_F(GpuRanks, TrainAsOneProcess) {
  expect_as_one_on_gpu({{"train.freeze", "[bn1]", "--set"},
                        {"train.clip_norm", "0.5", "--set"},
                        {"train.ema", "{decay: 0.9}", "--set"}});
  expect_as_one_on_gpu({{"train.freeze", "[bn1]", "--set"},
                        {"train.optimizer", "adamw", "--set"},
                        {"train.learning_rate", "0.002", "--lr"},
                        {"train.accumulate", "2", "--set"}},
                       1e-4F);  // where gradients are small, a division by their size makes much of rounding
}

TEST_F(GpuRanks, SyncBatchNormAndWeightClasses) {
  expect_as_one_on_gpu({{"model.layers.bn1.sync", "true", "--set"},
                        {"model.layers.conv1.bias", "false", "--set"},
                        {"data.train.images", "82", "--set"},
                        {"train.loss", "{cross_entropy: {class_weights: [1, 5, 2, 0.5]}}", "--set"}});
}

}  // namespace
}  // namespace twiddle
