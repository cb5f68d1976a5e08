#include <cmath>

#include "models/checkpoints/checkpoint.h"
#include "tests/models/small_training.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

// A run with each kind of loss and of batch mixing.
const std::vector<std::vector<Override>> every_kind{
    {{"train.loss", "{cross_entropy: {class_weights: [1, 2, 0.5, 1], label_smoothing: 0.1}}", "--set"}},
    {{"train.loss", "{binary_cross_entropy: {positive_weight: 2}}", "--set"}},
    {{"train.loss", "{mean_squared_error: {denoise: 0.1}}", "--set"},
     {"model.layers", "[conv2d: {filters: 1, kernel: 3, pad: 1}]", "--set"}},
    {{"train.mixup", "0.4", "--set"}, {"train.cutmix", "1", "--set"}, {"train.label_smoothing", "0.1", "--set"}},
    {{"train.loss", "binary_cross_entropy", "--set"}, {"train.cutmix", "1", "--set"}},
};

std::vector<std::vector<float>> trained(std::vector<Override> overrides, const Device& device, bool capture,
                                        Losses* losses = nullptr) {
  overrides.push_back({"device", to_string(device), "--device"});
  Trainer::Options options;
  options.capture = capture;
  Trainer trainer(small_experiment(overrides), options);
  std::atomic<bool> stop = false;
  if (losses != nullptr)
    trainer.run({losses}, stop);
  else
    trainer.run({}, stop);
  return weights(trainer);
}

TEST_P(EveryDevice, EveryTargetLearnsTheSameIfCaptured) {
  for (const std::vector<Override>& overrides : every_kind) {
    Losses losses;
    const auto captured = trained(overrides, GetParam(), true, &losses);
    EXPECT_EQ(captured, trained(overrides, GetParam(), false)) << overrides.front().value;
    EXPECT_LT(losses.epochs.back(), losses.epochs.front()) << overrides.front().value;
  }
}

TEST(TargetsRun, ResumesEveryTargetExactlyMidEpoch) {
  std::atomic<bool> stop = false;
  for (const std::vector<Override>& overrides : every_kind) {
    Trainer straight(small_experiment(overrides), {});
    straight.run({}, stop);
    const std::string folder = new_folder("resume_targets");
    {
      StopAfter stopper(7, stop);
      Trainer first(small_experiment(overrides), in_folder(folder));
      first.run({&stopper}, stop);
    }
    stop = false;
    Trainer second(small_experiment(overrides), in_folder(folder, newest_checkpoint(folder)));
    EXPECT_EQ(second.state().step, 7);
    second.run({}, stop);
    EXPECT_EQ(weights(second), weights(straight)) << overrides.front().value;
    EXPECT_EQ(second.state().best_score, straight.state().best_score) << overrides.front().value;
  }
}

TEST(TargetsRun, ReportsTrainingAccuracyForSingleLabels) {
  Losses labels, several;
  trained({{"train.mixup", "0.4", "--set"}}, {}, true, &labels);
  trained({{"train.loss", "binary_cross_entropy", "--set"}}, {}, true, &several);
  EXPECT_GT(labels.top1.back(), 0.2);
  EXPECT_TRUE(std::isnan(several.top1.back()));
}

}  // namespace
}  // namespace twiddle
