#include "models/training/training_data.h"

#include <gtest/gtest.h>

#include "framework/error.h"
#include "models/checkpoints/checkpoint.h"
#include "tests/models/small_training.h"

namespace twiddle {
namespace {

// A batch norm after `flatten` receives one value per channel from each image.
Experiment norm_on_rows(const std::string& images, const std::string& batch, const std::string& more = "") {
  return load_experiment_text(
      "version: 1\n"
      "model:\n"
      "  input: [1, 4, 4]\n"
      "  layers:\n"
      "    - linear: {outputs: 6}\n"
      "    - batch_norm\n"
      "    - linear: {outputs: 3}\n"
      "data: {train: {format: synthetic, classes: 3, images: " +
          images + "}" + more + "}\n" + "train: {epochs: 2, batch_size: " + batch + "}\n",
      "rows.yaml");
}

std::int64_t steps_of(Experiment experiment) {
  Trainer trainer(std::move(experiment), {});
  std::atomic<bool> stop = false;
  trainer.run({}, stop);
  return trainer.state().step;
}

TEST(TrainingData, SkipsUntrainableLastBatchOfOne) {
  EXPECT_EQ(steps_of(norm_on_rows("65", "64")), 2);
  EXPECT_EQ(steps_of(norm_on_rows("9", "4")), 2 * 2);
  EXPECT_EQ(steps_of(norm_on_rows("10", "4")), 2 * 3);  // a last batch of two can be
}

TEST(TrainingData, KeepsTrainableLastBatchOfOne) {
  EXPECT_EQ(steps_of(small_experiment({{"data.train.images", "81", "--set"}, {"train.epochs", "1", "--epochs"}})), 5);
}

TEST(TrainingData, RefusesUntrainableBatchSize) {
  for (const auto& [images, batch] : {std::pair("9", "1"), std::pair("1", "4")}) {
    try {
      Trainer trainer(norm_on_rows(images, batch), {});
      FAIL() << images << " images in batches of " << batch;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::config);
      EXPECT_NE(std::string(error.what()).find("rows.yaml:6:"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("batch_norm 'bn1'"), std::string::npos) << error.what();
    }
  }
}

TEST(TrainingData, DropsLastBatchIfSet) {
  EXPECT_EQ(steps_of(norm_on_rows("11", "4", ", drop_last: true")), 2 * 2);
  EXPECT_EQ(steps_of(norm_on_rows("11", "4", ", drop_last: false")), 2 * 3);
}

}  // namespace
}  // namespace twiddle
