#include <gtest/gtest.h>

#include <cmath>

#include "framework/error.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/conv/tuner/tuner.h"
#include "models/checkpoints/checkpoint.h"
#include "models/evaluation/evaluate.h"
#include "tests/models/small_training.h"
#include "tests/support/thread_ranks.h"

// Several ranks train as one process. Here they are threads; tests/apps/ranks_test.cpp has processes.
namespace twiddle {
namespace {

using Weights = std::vector<std::vector<float>>;

// The result of a training on each rank.
struct Outcome {
  Weights weights;
  std::vector<double> steps, epochs, top1;
  std::int64_t step = 0, images = 0, skipped = 0;
  std::uint64_t position = 0;
  EvalResult validation;
  Trainer::End end = Trainer::End::finished;
};

struct Training {
  std::vector<Override> overrides;
  std::string folder, resume;
  std::int64_t stop_after = 0;  // steps, on the last rank; 0: never
  std::function<void(Experiment&)> spoil = {};
};

Outcome train_on(const std::shared_ptr<Communicator>& ranks, const Training& training) {
  std::vector<Override> overrides = training.overrides;
  overrides.push_back({"data.workers", "1", "--workers"});
  overrides.push_back({"device", "cpu", "--device"});  // the sums of thread ranks are of host memory
  Trainer::Options options;
  options.ranks = ranks;
  options.resume = training.resume;
  if (ranks->rank() == 0) options.run_folder = training.folder;
  Experiment experiment = small_experiment(overrides);
  if (training.spoil) training.spoil(experiment);
  Trainer trainer(std::move(experiment), options);
  Losses losses;
  std::atomic<bool> stop = false;
  StopAfter stopper(training.stop_after, stop);
  std::vector<TrainObserver*> observers{&losses};
  if (training.stop_after > 0 && ranks->rank() == ranks->size() - 1) observers.push_back(&stopper);
  Outcome outcome;
  outcome.end = trainer.run(observers, stop);
  outcome.weights = weights(trainer);
  outcome.steps = losses.steps, outcome.epochs = losses.epochs, outcome.top1 = losses.top1;
  outcome.step = trainer.state().step, outcome.skipped = trainer.skipped();
  outcome.position = trainer.context().random.position();
  if (trainer.last_validation() != nullptr) outcome.validation = *trainer.last_validation();
  return outcome;
}

struct CountWaits : TrainObserver {
  std::vector<std::vector<double>> steps, epochs;
  bool wants_step(std::int64_t) override { return true; }
  void on_step(const StepReport& report) override { steps.push_back(report.wait.shares); }
  void on_epoch(const EpochReport& report) override { epochs.push_back(report.wait.shares); }
};

// Returns rank 0's outcome after checking that all ranks have equal weights.
Outcome train(int size, const Training& training) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(size));
  on_ranks(size, [&](const std::shared_ptr<Communicator>& ranks) {
    outcomes[static_cast<std::size_t>(ranks->rank())] = train_on(ranks, training);
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.weights, outcomes.front().weights);
  return outcomes.front();
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b, double bound) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], bound * std::abs(b[i])) << i;
}

// Differences are relative to the largest value of each tensor.
void expect_close(const Weights& a, const Weights& b, double bound) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t tensor = 0; tensor < a.size(); ++tensor) {
    float largest = 0;
    for (const float x : b[tensor]) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < a[tensor].size(); ++i)
      ASSERT_NEAR(a[tensor][i], b[tensor][i], bound * static_cast<double>(largest)) << tensor << ", " << i;
  }
}

// Batches of 20, the last of 10; batch norm with frozen averages, since its statistics are local to a rank.
const std::vector<Override> twenty_steps{{"train.freeze", "[bn1]", "--set"}};

std::vector<Override> with(std::vector<Override> more) {
  more.insert(more.end(), twenty_steps.begin(), twenty_steps.end());
  return more;
}

void expect_as_one(const Training& training, std::int64_t steps = 20) {
  const Outcome one = train(1, training);
  EXPECT_EQ(one.step, steps);
  for (const int size : {2, 4}) {
    const Outcome several = train(size, training);
    EXPECT_EQ(several.step, one.step);
    EXPECT_EQ(several.position, one.position) << "random numbers";
    expect_close(several.weights, one.weights, 1e-5);
    expect_close(several.steps, one.steps, 1e-5);
    expect_close(several.epochs, one.epochs, 1e-5);
    EXPECT_EQ(several.top1, one.top1);
    EXPECT_EQ(several.validation.images, 40);
    EXPECT_EQ(several.validation.confusion, one.validation.confusion);
    EXPECT_NEAR(several.validation.scores.loss, one.validation.scores.loss, 1e-5);
  }
}

TEST(Ranks, TrainAsOneProcess) {
  expect_as_one({twenty_steps, "", "", 0});
}

TEST(Ranks, ClipAverageAndMixAsOne) {
  expect_as_one({with({{"train.clip_norm", "0.5", "--set"},
                       {"train.ema", "{decay: 0.9}", "--set"},
                       {"train.mixup", "0.4", "--set"}}),
                 "", "", 0});
}

TEST(Ranks, AccumulateAsOneProcess) {
  expect_as_one({with({{"train.accumulate", "2", "--set"}}), "", "", 0}, 12);
}

// 82 images: the last batch has two, so that two of four ranks have none.
TEST(Ranks, AllowRankWithoutImages) {
  expect_as_one({with({{"data.train.images", "82", "--set"}}), "", "", 0});
  expect_as_one({with({{"data.train.images", "82", "--set"}, {"train.accumulate", "5", "--set"}}), "", "", 0}, 4);
}

// Statistics over the rows of all ranks, also if some have no row, and weighted means over them. The gradient of a bias
// before batch norm is only rounding error and cannot be compared.
TEST(Ranks, SyncBatchNormAndWeightClasses) {
  const std::vector<Override> sync{{"model.layers.bn1.sync", "true", "--set"},
                                   {"model.layers.conv1.bias", "false", "--set"},
                                   {"train.loss", "{cross_entropy: {class_weights: [1, 5, 2, 0.5]}}", "--set"}};
  expect_as_one({sync, "", "", 0});
  std::vector<Override> few = sync;
  few.push_back({"data.train.images", "82", "--set"});
  expect_as_one({few, "", "", 0});
  few.push_back({"train.accumulate", "5", "--set"});
  expect_as_one({few, "", "", 0}, 4);
}

// The added path ends in a batch norm, which adds the other path's output afterwards: ranks without a row must run the
// collectives in the same order.
TEST(Ranks, SyncBatchNormInPaths) {
  const std::string norm = "conv2d: {filters: 3, kernel: 3, pad: 1, bias: false}, batch_norm: {sync: true}";
  const std::string residual = "residual: {layers: [" + norm + "], shortcut: [" + norm + ", relu]}";
  const std::string layers = "[" + residual + ", relu, global_avg_pool, linear: {outputs: 4}]";
  expect_as_one({{{"model.layers", layers, "--set"}, {"data.train.images", "82", "--set"}}, "", "", 0});
}

TEST(Ranks, UsePlansMeasuredByFirst) {
  std::vector<std::string> reasons(2), plans(2);
  on_ranks(2, [&](const std::shared_ptr<Communicator>& ranks) {
    Trainer::Options options;
    options.ranks = ranks;
    Trainer trainer(small_experiment({{"device", "cpu", "--device"},
                                      {"convolution.engine", "measured", "--set"},
                                      {"convolution.cache", "off", "--set"},
                                      {"deterministic", "false", "--set"},
                                      {"train.epochs", "1", "--epochs"}}),
                    options);
    const std::atomic<bool> stop = false;
    trainer.run({}, stop);
    const TunedConvolution& conv = *trainer.model().net->convolutions().front();
    const auto* const choice = trainer.model().convolutions->find(conv.problem(10), ConvPass::backward_weight);
    ASSERT_NE(choice, nullptr);
    reasons[static_cast<std::size_t>(ranks->rank())] = choice->reason;
    plans[static_cast<std::size_t>(ranks->rank())] = full_name(*choice->plan);
  });
  EXPECT_EQ(plans[0], plans[1]);
  EXPECT_TRUE(reasons[0].starts_with("measured ") || reasons[0].starts_with("cached")) << reasons[0];
  EXPECT_EQ(reasons[1], "as on rank 0");
}

void stop_before_plans(const std::shared_ptr<Communicator>& ranks, int stopped) {
  Trainer::Options options;
  options.ranks = ranks;
  Trainer trainer(small_experiment({{"device", "cpu", "--device"},
                                    {"convolution.engine", "measured", "--set"},
                                    {"convolution.cache", "off", "--set"},
                                    {"deterministic", "false", "--set"}}),
                  options);
  const std::atomic<bool> stop = ranks->rank() == stopped;
  EXPECT_EQ(trainer.run({}, stop), Trainer::End::interrupted);
  EXPECT_EQ(trainer.state().step, 0);
  if (ranks->rank() == 0 && stopped == 1) return;  // it measures the first pass before it gets to know
  const TunedConvolution& conv = *trainer.model().net->convolutions().front();
  EXPECT_EQ(trainer.model().convolutions->find(conv.problem(10), ConvPass::forward), nullptr);
}

TEST(Ranks, StopBeforePlansIfOneStops) {
  for (const int stopped : {0, 1})
    on_ranks(2, [&](const std::shared_ptr<Communicator>& ranks) { stop_before_plans(ranks, stopped); });
}

TEST(Ranks, TrainBitwiseReproducibly) {
  const Training training{{}, "", "", 0};  // with batch norm by a rank's own statistics
  EXPECT_EQ(train(3, {{{"train.batch_size", "30", "--batch-size"}}, "", "", 0}).weights,
            train(3, {{{"train.batch_size", "30", "--batch-size"}}, "", "", 0}).weights);
  EXPECT_EQ(train(2, training).weights, train(2, training).weights);
}

TEST(Ranks, SkipBadImagesAsOneProcess) {
  const std::string list = write_pictures("ranks_bad", 17, {0, 5, 6, 13});
  const Training training{with({{"data.train", "{format: image_list, channels: 1, file: " + list + "}", "--set"},
                                {"data.on_error", "skip", "--set"},
                                {"train.batch_size", "4", "--batch-size"}}),
                          "", "", 0};
  const Outcome one = train(1, training), two = train(2, training);
  EXPECT_EQ(one.skipped, 4);
  EXPECT_EQ(two.skipped, 4);
  EXPECT_EQ(two.position, one.position);
  expect_close(two.weights, one.weights, 1e-5);
}

// Reduce-scatters begin in the backward pass, and all-gathers end before the layer that reads the weights.
TEST(Ranks, ReduceBucketsAsOneProcess) {
  const std::string config = R"(
version: 1
device: cpu
model: {input: [1, 8, 8], layers: [linear: {outputs: 16500}, relu, linear: {outputs: 70}, relu, linear: {outputs: 4}]}
data: {train: {format: synthetic, images: 24, classes: 4}}
train: {epochs: 2, batch_size: 6, learning_rate: 0.01}
)";
  const auto weights_of = [&](int size) {
    Weights result;
    on_ranks(size, [&](const std::shared_ptr<Communicator>& ranks) {
      Trainer::Options options;
      options.ranks = ranks;
      Trainer trainer(load_experiment_text(config, "linear.yaml"), options);
      std::atomic<bool> stop = false;
      trainer.run({}, stop);
      if (ranks->rank() == size - 1) result = weights(trainer);
    });
    return result;
  };
  expect_close(weights_of(2), weights_of(1), 1e-5);
}

std::string message_of(int size, const Training& training) {
  try {
    train(size, training);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The message names the rank that reads the image and the step that is saved.
TEST(Ranks, SaveAndStopOnBadImage) {
  const std::string list = write_pictures("ranks_fail", 17, {3});
  const Training training{with({{"data.train", "{format: image_list, channels: 1, file: " + list + "}", "--set"},
                                {"train.batch_size", "2", "--batch-size"}}),
                          new_folder("ranks_fail_run"), "", 0};
  const std::string message = message_of(2, training);
  EXPECT_TRUE(message.starts_with("rank ")) << message;
  EXPECT_NE(message.find("3.png"), std::string::npos) << message;
  EXPECT_NE(message.find(" is saved: "), std::string::npos) << message;
}

TEST(Ranks, ResumeTwoOnOneAndTwo) {
  const std::string folder = new_folder("ranks_resume");
  Training training{twenty_steps, folder, "", 7};
  const auto checkpoint = [&](int step) {
    return folder + "/checkpoints/step-" + (step < 10 ? "0000000" : "000000") + std::to_string(step);
  };
  const Outcome first = train(2, training);
  EXPECT_EQ(first.end, Trainer::End::interrupted);
  EXPECT_EQ(first.step, 7);
  training.resume = checkpoint(7), training.stop_after = 13;
  EXPECT_EQ(train(1, training).step, 13);
  training.resume = checkpoint(13), training.stop_after = 0;
  expect_close(train(2, training).weights, train(1, {twenty_steps, "", "", 0}).weights, 1e-5);
}

TEST(Ranks, ResumeIsBitwiseIdentical) {
  const std::string folder = new_folder("ranks_same_bits");
  EXPECT_EQ(train(2, {{}, folder, "", 7}).step, 7);
  EXPECT_EQ(train(2, {{}, folder, folder + "/checkpoints/step-00000007", 0}).weights,
            train(2, {{}, "", "", 0}).weights);
}

TEST(Ranks, GuardStopsAllAtSameStep) {
  const std::string message = message_of(2, {{{"train.learning_rate", "1000", "--lr"}}, "", "", 0});
  EXPECT_NE(message.find("loss became nan at epoch "), std::string::npos) << message;
}

// An infinite weight is on one rank until the all-gather copies it to all.
TEST(Ranks, StopIfUpdateOverflowsOnOne) {
  const std::string message = message_of(2, {{}, "", "", 0, [](Experiment& experiment) {
                                               experiment.model.net->parameters().front()->learning_rate = INFINITY;
                                             }});
  EXPECT_NE(message.find("an update became nan or infinite at epoch 1, step 1 "), std::string::npos) << message;
}

TEST(Ranks, ResumeFourOnThree) {
  const std::string folder = new_folder("ranks_four_three");
  std::vector<Override> overrides = with({{"train.optimizer", "adamw", "--set"},
                                          {"train.batch_size", "12", "--batch-size"},
                                          {"train.epochs", "3", "--epochs"},
                                          {"train.learning_rate", "0.002", "--lr"}});
  EXPECT_EQ(train(4, {overrides, folder, "", 7}).step, 7);
  const Outcome three = train(3, {overrides, folder, folder + "/checkpoints/step-00000007", 0});
  expect_close(three.weights, train(1, {overrides, "", "", 0}).weights, 1e-5);
}

// Also the validation images, which only their rank has read.
TEST(Ranks, EvaluateImagesAsOneProcess) {
  const std::string config = R"(
version: 1
device: cpu
model: {input: [1, 8, 8], layers: [conv2d: {filters: 3, kernel: 3, pad: 1}, relu, conv2d: {filters: 1, kernel: 3, pad: 1}]}
data: {train: {format: synthetic, images: 12}, val: {format: synthetic, images: 10, seed: 2}}
train: {epochs: 1, batch_size: 4, loss: {mean_squared_error: {denoise: 0.1}}}
)";
  const auto validation_on = [&](int size) {
    EvalResult validation;
    on_ranks(size, [&](const std::shared_ptr<Communicator>& ranks) {
      Trainer::Options options;
      options.ranks = ranks;
      Trainer trainer(load_experiment_text(config, "images.yaml"), options);
      std::atomic<bool> stop = false;
      trainer.run({}, stop);
      if (ranks->rank() == size - 1) validation = *trainer.last_validation();
    });
    return validation;
  };
  const EvalResult one = validation_on(1), two = validation_on(2);
  EXPECT_EQ(two.images, 10);
  EXPECT_NEAR(two.scores.psnr, one.scores.psnr, 1e-4);
  ASSERT_EQ(two.restored.size(), one.restored.size());
  for (std::size_t i = 0; i < one.restored.size(); ++i) {
    EXPECT_EQ(two.restored[i].index, one.restored[i].index);
    EXPECT_EQ(two.restored[i].input.pixels, one.restored[i].input.pixels);
  }
}

TEST(Ranks, ReportRankThatWaitsForImages) {
  const std::vector<std::string> lists{write_pictures("ranks_fast", 8), write_pictures("ranks_slow", 8)};
  make_slow_to_read(lists[1]);
  std::vector<std::vector<double>> of_steps, of_epochs;
  on_ranks(2, [&](const std::shared_ptr<Communicator>& ranks) {
    const std::string& list = lists.at(static_cast<std::size_t>(ranks->rank()));
    Trainer::Options options;
    options.ranks = ranks;
    Trainer trainer(small_experiment({{"device", "cpu", "--device"},
                                      {"data.train", "{format: image_list, channels: 1, file: " + list + "}", "--set"},
                                      {"data.workers", "0", "--workers"},
                                      {"train.epochs", "2", "--epochs"},
                                      {"train.batch_size", "4", "--batch-size"}}),
                    options);
    CountWaits waits;
    const std::atomic<bool> stop = false;
    trainer.run({&waits}, stop);
    if (ranks->rank() == 0) of_steps = waits.steps, of_epochs = waits.epochs;
  });
  EXPECT_EQ(of_steps.size(), 4u);
  EXPECT_EQ(of_epochs.size(), 2u);
  for (const auto& waits : {of_steps, of_epochs})
    for (const std::vector<double>& by_rank : waits) {
      ASSERT_EQ(by_rank.size(), 2u);
      EXPECT_GT(by_rank[1], by_rank[0]);
      EXPECT_LE(by_rank[1], 1);
    }
}

TEST(Ranks, RefuseBatchNotDivisibleByRanks) {
  EXPECT_NE(message_of(3, {}).find("20 images cannot be split evenly over 3 ranks: use 18 or 21"), std::string::npos);
}

}  // namespace
}  // namespace twiddle
