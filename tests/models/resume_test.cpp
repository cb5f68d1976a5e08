#include "models/training/resume.h"
#include "models/checkpoints/checkpoint.h"
#include "models/checkpoints/safetensors.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "tests/models/small_training.h"

namespace twiddle {
namespace {

// Records the images and the rate of each step.
struct Steps : TrainObserver {
  Trainer& trainer;
  std::vector<std::int64_t> images;  // of the epoch, so far
  std::vector<double> rates;
  explicit Steps(Trainer& of) : trainer(of) {}
  bool wants_step(std::int64_t) override {
    images.push_back(trainer.state().images);
    return true;
  }
  void on_step(const StepReport& report) override { rates.push_back(report.rate); }
};

// Runs until the step and saves a checkpoint there.
void train_until(std::int64_t step, const std::string& folder, Experiment experiment, Trainer::Options options = {}) {
  std::atomic<bool> stop = false;
  StopAfter stopper(step, stop);
  options.run_folder = folder;
  EXPECT_EQ(Trainer(std::move(experiment), options).run({&stopper}, stop), Trainer::End::interrupted);
}

std::string complaint(Experiment experiment, const Trainer::Options& options) {
  try {
    Trainer trainer(std::move(experiment), options);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    return error.what();
  }
}

TEST(Resume, ContinuesAtImageAfterBatchChange) {
  const std::vector<Override> two_epochs{{"train.epochs", "2", "--epochs"}};
  for (const std::string size : {"10", "25", "90"}) {
    const std::string folder = new_folder("batch_size_" + size);
    train_until(2, folder, small_experiment(two_epochs));  // 40 of 90 images
    Trainer resumed(small_experiment({two_epochs[0], {"train.batch_size", size, "--batch-size"}}),
                    in_folder(folder, newest_checkpoint(folder)));
    Steps steps(resumed);
    std::atomic<bool> stop = false;
    resumed.run({&steps}, stop);
    const std::int64_t batch = std::stoll(size);
    EXPECT_EQ(steps.images.front(), 40 + std::min<std::int64_t>(batch, 50)) << size;
    const auto steps_left = static_cast<std::size_t>((50 + batch - 1) / batch);
    EXPECT_EQ(steps.images.at(steps_left - 1), 90) << size;  // each once
    const double epoch = 40.0 / static_cast<double>((90 + batch - 1) / batch * batch);
    const Config::Train& rates = resumed.config().train;
    EXPECT_NEAR(steps.rates.front(), rates.learning_rate * rates.schedule.factor(epoch, 2), 1e-12);
  }
}

TEST(Resume, FollowsLongerScheduleWithMoreEpochs) {
  struct Rates : TrainObserver {
    std::vector<double> rates;
    bool wants_step(std::int64_t) override { return true; }
    void on_step(const StepReport& report) override { rates.push_back(report.rate); }
  } whole, rest;
  const auto epochs = [](const char* number) { return std::vector<Override>{{"train.epochs", number, "--epochs"}}; };
  std::atomic<bool> stop = false;
  Trainer straight(small_experiment(epochs("6")), {});
  straight.run({&whole}, stop);
  const std::string folder = new_folder("resume_more_epochs");
  Trainer(small_experiment(epochs("3")), in_folder(folder)).run({}, stop);
  Trainer resumed(small_experiment(epochs("6")), in_folder(folder, newest_checkpoint(folder)));
  resumed.run({&rest}, stop);
  EXPECT_EQ(rest.rates, std::vector<double>(whole.rates.begin() + 3 * 5, whole.rates.end()));
}

TEST(Resume, KeepsLimitsOfRun) {
  Trainer::Options limited;
  limited.limit_batches = 3;
  const std::string folder = new_folder("limited");
  train_until(4, folder, small_experiment(), limited);
  Trainer resumed(small_experiment(), in_folder(folder, newest_checkpoint(folder)));
  EXPECT_EQ(resumed.steps_per_epoch(), 3);
  std::atomic<bool> stop = false;
  resumed.run({}, stop);
  EXPECT_EQ(resumed.state().step, 4 * 3);

  Trainer::Options other = in_folder(folder, newest_checkpoint(folder));
  other.limit_batches = 2;
  EXPECT_NE(complaint(small_experiment(), other).find("begun with --limit-batches 3"), std::string::npos);
  other.limit_batches = 3, other.overfit_batch = true;
  EXPECT_NE(complaint(small_experiment(), other).find("begun without --overfit-batch"), std::string::npos);
}

TEST(Resume, ContinuesOverfitting) {
  std::atomic<bool> stop = false;
  Trainer::Options overfit;
  overfit.overfit_batch = true;
  Trainer straight(small_experiment(), overfit);
  straight.run({}, stop);
  const std::string folder = new_folder("overfitting");
  train_until(7, folder, small_experiment(), overfit);
  Trainer resumed(small_experiment(), in_folder(folder, newest_checkpoint(folder)));
  resumed.run({}, stop);
  EXPECT_EQ(weights(resumed), weights(straight));
}

TEST(Resume, AcceptsNewSeedOnlyBetweenEpochs) {
  const auto reseeded = [] { return small_experiment({{"seed", "7", "--seed"}}); };
  const std::string folder = new_folder("seed");
  train_until(7, folder, small_experiment());
  const std::string message = complaint(reseeded(), in_folder(folder, newest_checkpoint(folder)));
  EXPECT_NE(message.find("change the seed from 3"), std::string::npos) << message;

  std::atomic<bool> stop = false;
  Trainer(small_experiment({{"train.epochs", "1", "--epochs"}}), in_folder(folder)).run({}, stop);
  Trainer resumed(reseeded(), in_folder(folder, newest_checkpoint(folder)));
  EXPECT_EQ(resumed.context().random.seed(), 7u);
  EXPECT_GT(resumed.context().random.position(), 0u);
  resumed.run({}, stop);
  EXPECT_EQ(resumed.state().epoch, 4);
}

// A run on images of which one is damaged: progress before it is saved, and after the image is repaired the run
// continues as if it had never been damaged.
void expect_to_survive_a_bad_picture(const std::string& section, const std::string& good, const std::string& other) {
  const auto experiment = [&] {
    return small_experiment({{"data.train", "{format: image_list, channels: 1, file: " + good + "}", "--set"},
                             {"data.val", "{format: image_list, channels: 1, file: " + other + "}", "--set"},
                             {"train.batch_size", "2", "--batch-size"},
                             {"train.epochs", "2", "--epochs"}});
  };
  std::atomic<bool> stop = false;
  Trainer straight(experiment(), {});
  Losses straight_losses;
  straight.run({&straight_losses}, stop);

  const std::string damaged = section == "train" ? "survive_train" : "survive_val";
  write_pictures(damaged, 16, {11});
  const std::string folder = new_folder("survive_run_" + section);
  Losses losses;
  try {
    Trainer(experiment(), in_folder(folder)).run({&losses}, stop);
    FAIL() << "a damaged picture went well";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    EXPECT_NE(std::string(error.what()).find("11.png"), std::string::npos) << error.what();
  }
  write_pictures(damaged, 16);
  Trainer resumed(experiment(), in_folder(folder, newest_checkpoint(folder)));
  EXPECT_EQ(resumed.state().step, static_cast<std::int64_t>(losses.steps.size()));
  EXPECT_GT(resumed.state().step, 0);
  resumed.run({&losses}, stop);
  EXPECT_EQ(weights(resumed), weights(straight));
  EXPECT_EQ(losses.steps, straight_losses.steps);
  EXPECT_EQ(losses.epochs, straight_losses.epochs);
}

TEST(Resume, RepeatsFailedValidation) {
  expect_to_survive_a_bad_picture("val", write_pictures("survive_good", 16), write_pictures("survive_val", 16));
}

TEST(Resume, ContinuesAfterBatchBeforeBadImage) {
  expect_to_survive_a_bad_picture("train", write_pictures("survive_train", 16), write_pictures("survive_good", 16));
}

// Such checkpoints count only batches, and their precision is not known.
TEST(Resume, ReadsCheckpointsOfOlderVersions) {
  RunState state;
  state.position = -1, state.batch = 2, state.random_seed = 3;
  Trainer::Options options;
  EXPECT_EQ(resume(state, small_experiment().config, options), "");
  EXPECT_EQ(state.position, 40);
}

// Stopped after a number of steps, anywhere in an epoch, and resumed by another Trainer: the weights are bitwise
// identical.
TEST(Resume, IsExact) {
  std::atomic<bool> stop = false;
  Trainer straight(small_experiment(), {});
  Losses straight_losses;
  straight.run({&straight_losses}, stop);
  for (const std::int64_t steps : {1, 7, 10, 14}) {
    const std::string folder = new_folder("resume_" + std::to_string(steps));
    Losses losses;
    {
      StopAfter stopper(steps, stop);
      Trainer first(small_experiment(), in_folder(folder));
      EXPECT_EQ(first.run({&stopper, &losses}, stop), Trainer::End::interrupted);
      EXPECT_EQ(first.state().step, steps);
    }
    stop = false;
    Trainer second(small_experiment(), in_folder(folder, newest_checkpoint(folder)));
    EXPECT_EQ(second.run({&losses}, stop), Trainer::End::finished);
    EXPECT_EQ(weights(second), weights(straight)) << "stopped after step " << steps;
    EXPECT_EQ(losses.steps, straight_losses.steps) << "stopped after step " << steps;
    EXPECT_EQ(losses.epochs, straight_losses.epochs) << "stopped after step " << steps;
    EXPECT_EQ(losses.top1, straight_losses.top1) << "stopped after step " << steps;
  }
}

// A batch of bad images makes no step; a resumed run must not repeat a batch because of it.
TEST(Resume, IsExactAfterSkippedBatch) {
  const std::string list = write_pictures("pictures", 8, {0, 1, 2});
  const auto experiment = [&] {
    return small_experiment({{"data.train", "{format: image_list, channels: 1, file: " + list + "}", "--set"},
                             {"data.on_error", "skip", "--set"},
                             {"train.batch_size", "1", "--batch-size"},
                             {"train.epochs", "2", "--epochs"}});
  };
  std::atomic<bool> stop = false;
  Trainer straight(experiment(), {});
  Losses straight_losses;
  straight.run({&straight_losses}, stop);
  ASSERT_EQ(straight_losses.steps.size(), 2u * 5);
  for (std::int64_t steps = 1; steps < 10; ++steps) {
    const std::string folder = new_folder("skipped_" + std::to_string(steps));
    Losses losses;
    {
      StopAfter stopper(steps, stop);
      Trainer(experiment(), in_folder(folder)).run({&stopper, &losses}, stop);
    }
    stop = false;
    Trainer second(experiment(), in_folder(folder, newest_checkpoint(folder)));
    second.run({&losses}, stop);
    EXPECT_EQ(losses.steps, straight_losses.steps) << "stopped after step " << steps;
    EXPECT_EQ(weights(second), weights(straight)) << "stopped after step " << steps;
  }
}

void expect_to_resume_exactly(const std::vector<Override>& overrides) {
  std::atomic<bool> stop = false;
  Trainer straight(small_experiment(overrides), {});
  straight.run({}, stop);
  const std::string folder = new_folder("exactly");
  {
    StopAfter stopper(7, stop);
    Trainer(small_experiment(overrides), in_folder(folder)).run({&stopper}, stop);
  }
  stop = false;
  Trainer second(small_experiment(overrides), in_folder(folder, newest_checkpoint(folder)));
  second.run({}, stop);
  EXPECT_EQ(weights(second), weights(straight));
}

TEST(Resume, IsExactWithAdam) {
  expect_to_resume_exactly({{"train.optimizer", "adam", "--set"}});
}

TEST(Resume, IsExactInSixteenBits) {
  for (const char* precision : {"bf16", "fp16"}) expect_to_resume_exactly({{"precision", precision, "--set"}});
}

// Includes engines that select among several plans.
TEST(Resume, IsExactWithCpuFftEngine) {
  expect_to_resume_exactly({{"device", "cpu", "--set"},
                            {"deterministic", "false", "--set"},
                            {"convolution.cache", "off", "--set"},
                            {"model.input", "[16, 16, 16]", "--set"},
                            {"model.layers.conv1.filters", "16", "--set"},
                            {"model.layers.conv1.kernel", "5", "--set"}});
}

TEST(Resume, IsExactWithAccumulation) {
  const std::vector<Override> overrides{{"train.accumulate", "2", "--set"}, {"train.checkpoint_every", "2", "--set"}};
  std::atomic<bool> stop = false;
  Trainer straight(small_experiment(overrides), {});
  EXPECT_EQ(straight.steps_per_epoch(), 3);
  straight.run({}, stop);
  EXPECT_EQ(straight.state().step, 4 * 3);
  for (const std::int64_t steps : {1, 5, 6}) {
    const std::string folder = new_folder("resume_accumulated_" + std::to_string(steps));
    {
      StopAfter stopper(steps, stop);
      Trainer first(small_experiment(overrides), in_folder(folder));
      EXPECT_EQ(first.run({&stopper}, stop), Trainer::End::interrupted);
      EXPECT_EQ(first.state().step, steps);
    }
    stop = false;
    Trainer second(small_experiment(overrides), in_folder(folder, newest_checkpoint(folder)));
    second.run({}, stop);
    EXPECT_EQ(weights(second), weights(straight)) << "stopped after step " << steps;
  }
}

// Four steps, and two steps twice: equal weights, averages and optimizer state.
TEST(Resume, IsExactIn16Bits) {
  for (const std::string precision : {"bf16", "fp16"}) {
    const auto experiment = [&] {
      return small_experiment({{"precision", precision, "--precision"},
                               {"train.ema", "{decay: 0.9}", "--set"},
                               {"train.accumulate", "2", "--set"}});
    };
    const std::string straight = new_folder("straight_" + precision), folder = new_folder("resumed_" + precision);
    train_until(4, straight, experiment());
    train_until(2, folder, experiment());
    train_until(4, folder, experiment(), in_folder("", newest_checkpoint(folder)));
    for (const char* file : {"/model.safetensors", "/state.safetensors"}) {
      const SafeTensors a = read_safetensors(newest_checkpoint(straight) + file),
                        b = read_safetensors(newest_checkpoint(folder) + file);
      EXPECT_EQ(a.metadata, b.metadata) << precision << file;
      for (const auto& [name, array] : a.arrays) EXPECT_TRUE(array.bytes == b.arrays.at(name).bytes) << name;
    }
  }
}

TEST(Resume, WarnsInOtherPrecision) {
  const auto in = [](const char* precision) { return small_experiment({{"precision", precision, "--precision"}}); };
  const std::string folder = new_folder("other_precision");
  train_until(2, folder, in("fp32"));
  const auto warnings = [&](const char* precision) {
    return Trainer(in(precision), in_folder(folder, newest_checkpoint(folder))).warnings();
  };
  EXPECT_EQ(warnings("fp32"), std::vector<std::string>());
  EXPECT_EQ(warnings("bf16"), (std::vector<std::string>{"resumed in bf16; the checkpoint was saved in fp32"}));
  train_until(4, folder, in("bf16"), in_folder("", newest_checkpoint(folder)));
  EXPECT_EQ(warnings("bf16"), std::vector<std::string>());
  EXPECT_EQ(warnings("tf32"), (std::vector<std::string>{"resumed in tf32; the checkpoint was saved in bf16"}));
}

}  // namespace
}  // namespace twiddle
