#include "models/open_data.h"

#include <gtest/gtest.h>

#include <fstream>

#include "framework/error.h"
#include "tests/support/temp_path.h"

namespace twiddle {
namespace {

Experiment experiment_with_data(const std::string& data) {
  return load_experiment_text("version: 1\nmodel: {input: [1, 4, 4], layers: [{linear: {outputs: 3}}]}\ndata:\n" + data,
                              "data.yaml");
}

std::string error_of(const std::string& data, OpenData (*open)(const Experiment&) = open_data) {
  try {
    open(experiment_with_data(data));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "no error";
}

TEST(OpenData, OpensWhatTheSectionNames) {
  const OpenData data = open_data(experiment_with_data("  train: {format: synthetic, images: 12, classes: 3}\n"));
  EXPECT_EQ(data.train->size(), 12);
  EXPECT_EQ(data.val, nullptr);
}

TEST(OpenData, TakesARangeOfTheImages) {
  const OpenData data =
      open_data(experiment_with_data("  train: {format: synthetic, images: 12, classes: 3, count: 8}\n"
                                     "  val: {format: synthetic, images: 12, classes: 3, first: 8}\n"));
  EXPECT_EQ(data.train->size(), 8);
  EXPECT_EQ(data.val->size(), 4);
}

TEST(OpenData, SaysWhatIsWrongAndWhere) {
  EXPECT_NE(error_of("  train: {format: sinthetic}\n").find("did you mean 'synthetic'"), std::string::npos);
  EXPECT_NE(error_of("  train: {format: synthetic, images: 12, classes: 3, imgs: 2}\n").find("unknown key 'imgs'"),
            std::string::npos);
  EXPECT_NE(error_of("  train: {images: 12}\n").find("'format'"), std::string::npos);
  EXPECT_NE(error_of("  train: {format: synthetic, images: 12, classes: 3, first: 12}\n").find("beyond the 12 images"),
            std::string::npos);
  EXPECT_NE(error_of("  train: {format: synthetic, images: 12, classes: 4}\n").find("4 classes"), std::string::npos);
}

TEST(OpenData, PointsAtTheLayerThatHasTooFewOutputs) {
  const std::string train = error_of("  train: {format: synthetic, images: 12, classes: 4}\n");
  EXPECT_EQ(train.find("data.yaml:2:37: error: data.train has 4 classes, the last layer gives 3 outputs\n"), 0u)
      << train;
  EXPECT_NE(train.find("^~~~~~ set its outputs to 4\n"), std::string::npos) << train;
  const std::string val = error_of("  val: {format: synthetic, images: 12, classes: 5}\n", open_val_data);
  EXPECT_EQ(val.find("data.yaml:2:37: error: data.val has 5 classes"), 0u) << val;
}

TEST(OpenData, NamesFileOfTheLargestLabel) {
  const std::string list = temp_path("labels.txt");
  std::ofstream(list) << "a.png 1\nb.png 7\nc.png 2\n";
  const std::string message = error_of("  train: {format: image_list, file: '" + list + "', count: 2}\n");
  EXPECT_NE(message.find("data.train has 8 classes (" + list + ":2 has label 7), the last layer gives 3 outputs"),
            std::string::npos)
      << message;
}

TEST(OpenData, OfImagesMadeOfImagesTheClassesDoNotMatter) {
  const Experiment experiment = load_experiment_text(
      "version: 1\nmodel: {input: [1, 4, 4], layers: [conv2d: {filters: 1, kernel: 1}]}\n"
      "data:\n  train: {format: synthetic, images: 12, classes: 3}\n  val: {format: synthetic, images: 8, classes: 2}\n"
      "train: {loss: mean_squared_error}\n",
      "images.yaml");
  EXPECT_EQ(open_data(experiment).val->size(), 8);
  EXPECT_EQ(open_val_data(experiment).val->size(), 8);
}

TEST(OpenData, NamesTheConfigWhereADatasetDoesNotOpen) {
  try {
    open_data(experiment_with_data("  train: {format: image_folder, path: not/there}\n"));
    ADD_FAILURE() << "opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    const std::string message = error.what();
    EXPECT_EQ(message.find("data.yaml:4:10: no such file or folder: 'not/there'"), 0u) << message;
  }
}

TEST(OpenData, ACountOfNoImagesIsAnError) {
  EXPECT_NE(error_of("  train: {format: synthetic, images: 12, count: 0}\n").find("'count' must be a whole number"),
            std::string::npos);
}

TEST(OpenData, HandsTheLimitOfPixelsToTheDataset) {
  const Experiment experiment = experiment_with_data("  max_pixels: 1000\n  train: {format: synthetic}\n");
  EXPECT_EQ(experiment.config.data.max_pixels, 1000);
  EXPECT_EQ(experiment_with_data("  train: {format: synthetic}\n").config.data.max_pixels, usual_max_pixels);
  EXPECT_NE(error_of("  max_pixels: 0\n").find("'max_pixels' must be a whole number from 1"), std::string::npos);
}

TEST(OpenData, TellsEveryFileThatIsMissing) {
  const Experiment experiment = experiment_with_data(
      "  train: {format: idx, images: no/a.gz, labels: no/b.gz}\n  val: {format: idx, images: no/c.gz, labels: "
      "no/d.gz}\n");
  try {
    open_data(experiment);
    FAIL() << "opened what is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    for (const std::string file : {"no/a.gz", "no/b.gz", "no/c.gz", "no/d.gz"})
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << file << " is not in\n" << error.what();
  }
}

TEST(OpenData, ForValidationNeedsNoTrainingData) {
  const OpenData data =
      open_val_data(experiment_with_data("  train: {format: idx, images: no/a.gz, labels: no/b.gz}\n"
                                         "  val: {format: synthetic, images: 12, classes: 3}\n"));
  EXPECT_EQ(data.train, nullptr);
  EXPECT_EQ(data.val->size(), 12);
}

TEST(OpenData, RefusesSetsOfDifferentClasses) {
  const std::string text = error_of(
      "  train: {format: synthetic, images: 12, classes: 3}\n  val: {format: synthetic, images: 12, classes: 2}\n");
  EXPECT_EQ(text.find("data.yaml:5:8: error: data.train and data.val do not have the same classes"), 0u) << text;
}

}  // namespace
}  // namespace twiddle
