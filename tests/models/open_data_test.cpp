#include "models/training/open_data.h"
#include "models/config/experiment.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "framework/error.h"
#include "tests/support/temp_path.h"

namespace twiddle {
namespace {

Experiment experiment_with_data(const std::string& data) {
  return load_experiment_text("version: 1\nmodel: {input: [1, 4, 4], layers: [{linear: {outputs: 3}}]}\ndata:\n" + data,
                              "data.yaml");
}

OpenData open_mapped(const Experiment& experiment) {
  OpenData data = open_data(experiment);
  map_classes(experiment, {}, data);
  return data;
}

std::string error_of(const std::string& data, const std::function<void(const Experiment&)>& open = open_mapped) {
  try {
    open(experiment_with_data(data));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "no error";
}

TEST(OpenData, OpensConfiguredDatasets) {
  const OpenData data = open_data(experiment_with_data("  train: {format: synthetic, images: 12, classes: 3}\n"));
  EXPECT_EQ(data.train->size(), 12);
  EXPECT_EQ(data.val, nullptr);
}

TEST(OpenData, SelectsRangeOfImages) {
  const OpenData data =
      open_data(experiment_with_data("  train: {format: synthetic, images: 12, classes: 3, count: 8}\n"
                                     "  val: {format: synthetic, images: 12, classes: 3, first: 8}\n"));
  EXPECT_EQ(data.train->size(), 8);
  EXPECT_EQ(data.val->size(), 4);
}

TEST(OpenData, ReportsErrorsWithPosition) {
  EXPECT_NE(error_of("  train: {format: sinthetic}\n").find("did you mean 'synthetic'"), std::string::npos);
  EXPECT_NE(error_of("  train: {format: synthetic, images: 12, classes: 3, imgs: 2}\n").find("unknown key 'imgs'"),
            std::string::npos);
  EXPECT_NE(error_of("  train: {images: 12}\n").find("'format'"), std::string::npos);
  EXPECT_NE(error_of("  train: {format: synthetic, images: 12, classes: 3, first: 12}\n").find("beyond the 12 images"),
            std::string::npos);
  EXPECT_NE(error_of("  train: {format: synthetic, images: 12, classes: 4}\n").find("4 classes"), std::string::npos);
}

TEST(OpenData, PointsAtLayerLackingOutputs) {
  const std::string train = error_of("  train: {format: synthetic, images: 12, classes: 4}\n");
  EXPECT_EQ(train.find("data.yaml:2:37: error: data.train has 4 classes, the last layer gives 3 outputs\n"), 0u)
      << train;
  EXPECT_NE(train.find("^~~~~~ set its outputs to 4\n"), std::string::npos) << train;
  const std::string val = error_of("  val: {format: synthetic, images: 12, classes: 5}\n",
                                   [](const Experiment& experiment) { open_val_data(experiment); });
  EXPECT_EQ(val.find("data.yaml:2:37: error: data.val has 5 classes"), 0u) << val;
}

TEST(OpenData, NamesFileOfLargestLabel) {
  const std::string list = temp_path("labels.txt");
  std::ofstream(list) << "a.png 1\nb.png 7\nc.png 2\n";
  const std::string message = error_of("  train: {format: image_list, file: '" + list + "', count: 2}\n");
  EXPECT_NE(message.find("data.train has 8 classes (" + list + ":2 has label 7), the last layer gives 3 outputs"),
            std::string::npos)
      << message;
}

TEST(OpenData, IgnoresClassesIfTargetIsImage) {
  const Experiment experiment = load_experiment_text(
      "version: 1\nmodel: {input: [1, 4, 4], layers: [conv2d: {filters: 1, kernel: 1}]}\n"
      "data:\n  train: {format: synthetic, images: 12, classes: 3}\n  val: {format: synthetic, images: 8, classes: 2}\n"
      "train: {loss: mean_squared_error}\n",
      "images.yaml");
  EXPECT_EQ(open_data(experiment).val->size(), 8);
  EXPECT_EQ(open_val_data(experiment).val->size(), 8);
}

TEST(OpenData, NamesConfigIfOpeningFails) {
  try {
    open_data(experiment_with_data("  train: {format: image_folder, path: not/there}\n"));
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    const std::string message = error.what();
    EXPECT_EQ(message.find("data.yaml:4:10: no such file or folder: 'not/there'"), 0u) << message;
  }
}

TEST(OpenData, RefusesZeroCount) {
  EXPECT_NE(error_of("  train: {format: synthetic, images: 12, count: 0}\n").find("'count' must be a whole number"),
            std::string::npos);
}

TEST(OpenData, PassesPixelLimitToDataset) {
  const Experiment experiment = experiment_with_data("  max_pixels: 1000\n  train: {format: synthetic}\n");
  EXPECT_EQ(experiment.config.data.max_pixels, 1000);
  EXPECT_EQ(experiment_with_data("  train: {format: synthetic}\n").config.data.max_pixels, usual_max_pixels);
  EXPECT_NE(error_of("  max_pixels: 0\n").find("'max_pixels' must be a whole number from 1"), std::string::npos);
}

TEST(OpenData, ReportsAllMissingFiles) {
  const Experiment experiment = experiment_with_data(
      "  train: {format: idx, images: no/a.gz, labels: no/b.gz}\n  val: {format: idx, images: no/c.gz, labels: "
      "no/d.gz}\n");
  try {
    open_data(experiment);
    FAIL() << "opened missing files";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    for (const std::string file : {"no/a.gz", "no/b.gz", "no/c.gz", "no/d.gz"})
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << file << " is not in\n" << error.what();
  }
}

TEST(OpenData, ValidationNeedsNoTrainingData) {
  const OpenData data =
      open_val_data(experiment_with_data("  train: {format: idx, images: no/a.gz, labels: no/b.gz}\n"
                                         "  val: {format: synthetic, images: 12, classes: 3}\n"));
  EXPECT_EQ(data.train, nullptr);
  EXPECT_EQ(data.val->size(), 12);
}

std::string list_of(const std::string& name, const std::string& lines) {
  const std::string file = temp_path(name);
  std::ofstream(file) << lines;
  return "{format: image_list, file: " + file + "}";
}

TEST(OpenData, MapsClassesOfValidationByName) {
  const std::string train = list_of("train.txt", "a.png cat\nb.png dog\nc.png hen\n"),
                    val = list_of("val.txt", "a.png hen\nb.png dog\n");
  const OpenData data = open_mapped(experiment_with_data("  train: " + train + "\n  val: " + val + "\n"));
  EXPECT_EQ(data.val->classes(), data.train->classes());
  EXPECT_EQ(data.val->labels(0), (std::vector<std::int64_t>{2}));
  EXPECT_TRUE(data.warnings.empty());
}

TEST(OpenData, ListsSetsOfUnknownClass) {
  const std::string train = list_of("train.txt", "a.png cat\nb.png dog\nc.png hen\n"),
                    val = list_of("val.txt", "a.png cow\nb.png dog\n");
  const std::string text = error_of("  train: " + train + "\n  val: " + val + "\n");
  EXPECT_EQ(
      text.find("data.yaml:5:8: error: data.val has 1 class that data.train does not have: 1 (cow); data.val: 2 (cow, "
                "dog); data.train: 3 (cat, dog, hen)"),
      0u)
      << text;
}

TEST(OpenData, MapsClassesOfValidationToNetwork) {
  const Experiment experiment = experiment_with_data("  val: " + list_of("val.txt", "a.png hen\nb.png dog\n") + "\n");
  const OpenData named = open_val_data(experiment, {{"cat", "dog", "hen"}, "best.safetensors"});
  EXPECT_EQ(named.val->labels(0), (std::vector<std::int64_t>{2}));
  EXPECT_TRUE(named.warnings.empty());
  const OpenData unnamed = open_val_data(experiment);
  ASSERT_EQ(unnamed.warnings.size(), 1u);
  EXPECT_NE(unnamed.warnings[0].find("class N of the data is compared with output N"), std::string::npos);
}

TEST(OpenData, WarnsOfClassesWithoutImages) {
  const OpenData data =
      open_data(experiment_with_data("  train: {format: synthetic, images: 12, classes: 3, count: 2}\n"
                                     "  val: {format: synthetic, images: 12, classes: 3, first: 11}\n"));
  EXPECT_EQ(data.warnings, (std::vector<std::string>{"data.train: 1 of 3 classes has no image here (2)",
                                                     "data.val: 2 of 3 classes have no image here (0, 1)"}));
}

// Labels that start with 1, such as EMNIST letters.
TEST(OpenData, NamesEmptyClassIfOutputsMismatch) {
  const std::string train = list_of("train.txt", "a.png 1\nb.png 2\nc.png 3\n");
  const std::string text = error_of("  train: " + train + "\n");
  EXPECT_NE(text.find("the last layer gives 3 outputs; 1 of 4 classes has no image here (0)"), std::string::npos)
      << text;
}

TEST(OpenData, RefusesTooLargeClassNames) {
  std::string lines;
  for (const char letter : {'a', 'b', 'c'}) lines += "x.png " + std::string(6 << 20, letter) + "\n";
  const std::string text = error_of("  train: " + list_of("train.txt", lines) + "\n");
  EXPECT_EQ(text.find("data.yaml:4:10: error: the names of its 3 classes take 18.0 MiB"), 0u) << text.substr(0, 300);
}

}  // namespace
}  // namespace twiddle
