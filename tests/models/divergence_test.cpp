#include "models/training/divergence.h"
#include "models/checkpoints/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/error.h"
#include "tests/models/bad_gradient.h"
#include "tests/models/small_training.h"

namespace twiddle {
namespace {

std::string message_of_run(Trainer& trainer) {
  std::atomic<bool> stop = false;
  try {
    trainer.run({}, stop);
    return {};
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::diverged) << error.what();
    return error.what();
  }
}

// The loss stays finite. The files on disk are those saved before.
TEST(Divergence, StopsRunBeforeSave) {
  for (const std::string clip : {"0", "1"}) {
    const std::string folder = new_folder("bad_gradient_" + clip);
    const std::vector<Override> overrides{{"device", "cpu", "--device"},
                                          {"train.clip_norm", clip, "--set"},
                                          {"train.learning_rate", "0.0123456789", "--lr"},
                                          {"train.schedule", "constant", "--set"},
                                          {"train.checkpoint_every", "2", "--set"}};
    Trainer trainer(small_experiment(overrides), in_folder(folder));
    trainer.model().net->add("bad", std::make_unique<BadGradient>(Shape{4}, 3));  // the fourth step's
    const std::string message = message_of_run(trainer);
    for (const char* part : {"an update became nan or infinite at epoch 1, step 4 (learning rate 0.0123);",
                             "every layer's output is finite", "first bad gradient: 'fc1.bias'", "(try 0.00123)",
                             "last good checkpoint: ", "step-00000002"})
      EXPECT_NE(message.find(part), std::string::npos) << part << " is not in\n" << message;

    EXPECT_TRUE(newest_checkpoint(folder).ends_with("step-00000002"));
    Trainer resumed(small_experiment(overrides), in_folder(folder, newest_checkpoint(folder)));
    for (const std::vector<float>& values : weights(resumed))
      for (const float value : values) EXPECT_TRUE(std::isfinite(value));
  }
}

// A step clipped to a norm of 1 moves no weight by more than its rate, whatever the gradient.
TEST(Divergence, IgnoresLargeGradientIfClipped) {
  Experiment steep = load_experiment_text(
      "version: 1\n"
      "device: cpu\n"
      "model:\n"
      "  input: [1, 4, 4]\n"
      "  layers:\n"
      "    - linear: {outputs: 8, init: {gaussian: 1e6}}\n"
      "    - linear: {outputs: 8, init: {gaussian: 1e6}}\n"
      "    - linear: {outputs: 8, init: {gaussian: 1e6}}\n"
      "    - linear: {outputs: 4, init: {gaussian: 1e6}}\n"
      "data: {train: {format: synthetic, images: 16, classes: 4}}\n"
      "train: {epochs: 1, batch_size: 16, clip_norm: 1, learning_rate: 0.1}\n",
      "steep.yaml");
  Trainer trainer(std::move(steep), {});
  const auto before = weights(trainer);
  std::atomic<bool> stop = false;
  EXPECT_EQ(trainer.run({}, stop), Trainer::End::finished);
  const auto after = weights(trainer);
  double moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    for (std::size_t k = 0; k < before[i].size(); ++k)
      moved = std::max(moved, std::abs(static_cast<double>(after[i][k]) - before[i][k]));
  EXPECT_GT(moved, 0);
  EXPECT_LE(moved, 0.2);  // a float of 1e6 has steps of 0.06
}

}  // namespace
}  // namespace twiddle
