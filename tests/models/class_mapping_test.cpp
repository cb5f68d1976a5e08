#include <gtest/gtest.h>

#include "framework/error.h"
#include "tests/models/small_training.h"

namespace twiddle {
namespace {

// Images of four classes with these names.
Experiment experiment_of_classes(const std::string& list, const std::string& classes) {
  const std::string data = "{format: image_list, channels: 1, file: " + list + ", classes: " + classes + "}";
  return small_experiment({{"data.train", data, "--set"}, {"data.val", data, "--set"}, {"train.epochs", "1", ""}});
}

std::string checkpoint_of(const std::string& list, const std::string& run) {
  Trainer trainer(experiment_of_classes(list, "[a, b, c, d]"), in_folder(run));
  std::atomic<bool> stop = false;
  trainer.run({}, stop);
  return trainer.last_checkpoint();
}

std::string mapping_refusal(const std::string& list, const Trainer::Options& options) {
  try {
    Trainer(experiment_of_classes(list, "[a, b, c, purple]"), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "taken";
}

TEST(ClassMapping, ResumedRunKeepsClassesOfCheckpoint) {
  const std::string list = write_pictures("mapping", 12), run = new_folder("mapping_run");
  const std::string checkpoint = checkpoint_of(list, run);
  const Trainer resumed(experiment_of_classes(list, "[d, c, b, a]"), in_folder(run, checkpoint));
  EXPECT_EQ(resumed.train_data().classes(), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(resumed.train_data().labels(0), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(resumed.val_data()->labels(1), (std::vector<std::int64_t>{2}));
  const std::string message = mapping_refusal(list, in_folder(run, checkpoint));
  EXPECT_NE(message.find("data.train has 1 class that " + checkpoint +
                         " does not have: 1 (purple); data.train: 4 (a, b, c, "
                         "purple); " +
                         checkpoint + ": 4 (a, b, c, d)"),
            std::string::npos)
      << message;
}

TEST(ClassMapping, LoadedLastLayerKeepsItsClasses) {
  const std::string list = write_pictures("mapping", 12);
  Trainer::Options options;
  options.weights = checkpoint_of(list, new_folder("mapping_run")) + "/model.safetensors";
  const Trainer mapped(experiment_of_classes(list, "[d, c, b, a]"), options);
  EXPECT_EQ(mapped.train_data().classes(), (std::vector<std::string>{"a", "b", "c", "d"}));
  const std::string message = mapping_refusal(list, options);
  EXPECT_NE(message.find("does not have: 1 (purple)"), std::string::npos) << message;
  EXPECT_NE(message.find("give it another name"), std::string::npos) << message;
}

// The validation data and the network have a class that is missing in the training data.
TEST(ClassMapping, ValidationHasClassMissingInTraining) {
  const std::string list = write_pictures("mapping", 12), part = list + ".part";
  std::ofstream(part) << "0.png b\n1.png c\n2.png d\n";
  Trainer::Options options;
  options.weights = checkpoint_of(list, new_folder("mapping_run")) + "/model.safetensors";
  const std::string format = "{format: image_list, channels: 1, file: ";
  const Trainer tuned(small_experiment({{"data.train", format + part + "}", "--set"},
                                        {"data.val", format + list + ", classes: [a, b, c, d]}", "--set"}}),
                      options);
  EXPECT_EQ(tuned.train_data().labels(0), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(tuned.val_data()->labels(3), (std::vector<std::int64_t>{3}));
}

// The same images of the same classes with other class numbers.
TEST(ClassMapping, ClassWeightsFollowClassesOfNetwork) {
  const std::string list = write_pictures("mapping", 12), turned = list + ".turned";
  std::ofstream lines(turned);
  for (int i = 0; i < 12; ++i) lines << i << ".png " << 3 - i % 4 << '\n';
  lines.close();
  Trainer::Options options;
  options.weights = checkpoint_of(list, new_folder("mapping_run")) + "/model.safetensors";
  const auto losses = [&](const std::string& file, const std::string& classes, const std::string& factors) {
    const std::string data = "{format: image_list, channels: 1, file: " + file + ", classes: " + classes + "}";
    Trainer trainer(small_experiment({{"data.train", data, "--set"},
                                      {"data.val", data, "--set"},
                                      {"train.epochs", "1", ""},
                                      {"train.loss", "{cross_entropy: {class_weights: " + factors + "}}", "--set"}}),
                    options);
    Losses seen;
    std::atomic<bool> stop = false;
    trainer.run({&seen}, stop);
    return seen.steps;
  };
  const std::vector<double> of_network = losses(list, "[a, b, c, d]", "[1, 2, 4, 8]");
  EXPECT_EQ(losses(turned, "[d, c, b, a]", "[8, 4, 2, 1]"), of_network);
  EXPECT_NE(losses(turned, "[d, c, b, a]", "[1, 2, 4, 8]"), of_network);
}

TEST(ClassMapping, NewLastLayerUsesDataClasses) {
  const std::string list = write_pictures("mapping", 12);
  Trainer::Options options;
  options.weights = checkpoint_of(list, new_folder("mapping_run")) + "/model.safetensors";
  const std::string data = "{format: image_list, channels: 1, file: " + list + ", classes: [e, f, g, h, i]}";
  const Trainer tuned(
      small_experiment(
          {{"data.train", data, "--set"}, {"data.val", data, "--set"}, {"model.layers.fc1.outputs", "5", "--set"}}),
      options);
  EXPECT_EQ(tuned.train_data().classes().at(0), "e");
}

}  // namespace
}  // namespace twiddle
