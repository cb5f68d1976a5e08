#include "models/evaluation/evaluate.h"
#include "data/formats/dataset.h"
#include "data/loader.h"
#include "framework/context.h"
#include "framework/parameter.h"
#include "layers/sequential.h"
#include "models/builder.h"
#include "models/config/experiment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/error.h"
#include "models/evaluation/evaluator.h"
#include "models/training/open_data.h"

namespace twiddle {
namespace {

// A network that predicts class 2, with probability e / (e + 3), for every image.
struct AlwaysTwo {
  Experiment experiment = load_experiment_text(
      "version: 1\ndevice: cpu\n"
      "model: {input: [1, 4, 4], layers: [{linear: {outputs: 4, init: 0}}]}\n"
      "data: {train: {format: synthetic, images: 40, classes: 4}, workers: 0}\n",
      "two.yaml");
  const Model& model = experiment.model;
  OpenData data = open_data(experiment);
  Context ctx;
  Loader loader{*data.train, *data.val_augment, {.batch_size = 7, .workers = 0}};

  AlwaysTwo() {
    model.net->initialize(ctx);
    for (Parameter* parameter : model.net->parameters()) {
      if (parameter->shape == Shape{4})
        parameter->variable.value() = Tensor::from<float>(*ctx.stream, {4}, {0, 0, 1, 0});
    }
  }
};

TEST(Evaluate, CountsCorrectPredictions) {
  AlwaysTwo two;
  const EvalResult result = evaluate(two.ctx, *two.model.net, *two.experiment.loss, two.loader);
  std::int64_t of_class_two = 0;
  Image image;
  for (std::int64_t i = 0; i < 40; ++i) of_class_two += two.data.train->get(i, image).label() == 2;
  EXPECT_EQ(result.images, 40);
  EXPECT_DOUBLE_EQ(result.scores.top1, static_cast<double>(of_class_two) / 40);
  EXPECT_DOUBLE_EQ(result.scores.top5, 1);
  const double share = result.scores.top1, right = -std::log(std::exp(1.0) / (std::exp(1.0) + 3)),
               wrong = -std::log(1 / (std::exp(1.0) + 3));
  EXPECT_NEAR(result.scores.loss, share * right + (1 - share) * wrong, 1e-5);
}

TEST(Evaluate, NamesImageWithNonFiniteInput) {
  AlwaysTwo two;
  const Experiment overflowing = load_experiment_text(
      "version: 1\ndevice: cpu\n"
      "model: {input: [1, 4, 4], layers: [{linear: {outputs: 4}}]}\n"
      "data: {normalize: {mean: 0, std: 1e-41}, workers: 0}\n",
      "overflowing.yaml");
  Loader loader(*two.data.train, *overflowing.data.val_augment, {.batch_size = 7, .workers = 0});
  try {
    evaluate(two.ctx, *two.model.net, *two.experiment.loss, loader);
    FAIL() << "pixels that are not finite went well";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    const std::string message = error.what();
    EXPECT_NE(message.find(two.data.train->where(0) + ": the value at channel 0, row 0, column 0 is "),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("'normalize'"), std::string::npos) << message;
  }
}

TEST(Evaluate, FillsConfusionMatrixAndMistakes) {
  AlwaysTwo two;
  const EvalResult result = evaluate(two.ctx, *two.model.net, *two.experiment.loss, two.loader);
  std::int64_t images = 0;
  for (const auto& [pair, count] : result.confusion) {
    EXPECT_EQ(pair.second, 2);
    images += count;
  }
  EXPECT_EQ(images, 40);
  ASSERT_FALSE(result.wrong.empty());
  for (const EvalResult::Wrong& wrong : result.wrong) {
    EXPECT_EQ(wrong.predicted, 2);
    EXPECT_NE(wrong.actual, 2);
    EXPECT_NEAR(wrong.probability, std::exp(1.0) / (std::exp(1.0) + 3), 1e-5);
  }
}

TEST(Evaluate, LimitsBatchesAndRestoresContext) {
  AlwaysTwo two;
  EXPECT_EQ(evaluate(two.ctx, *two.model.net, *two.experiment.loss, two.loader, 2).images, 14);
  EXPECT_TRUE(two.ctx.training);
  EXPECT_TRUE(two.ctx.tape.empty());
}

// 4x4 images with given labels.
class Labelled final : public Dataset {
 public:
  Labelled(std::int64_t classes, std::vector<std::int64_t> labels)
      : classes_(static_cast<std::size_t>(classes), "one"), labels_(std::move(labels)) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  const std::vector<std::string>& classes() const override { return classes_; }
  Target get(std::int64_t index, Image& image) const override {
    image = {1, 4, 4, std::vector<std::uint8_t>(16, 100)};
    return labels_.at(static_cast<std::size_t>(index));
  }
  std::string where(std::int64_t index) const override { return "picture " + std::to_string(index); }
  std::string describe() const override { return "labelled"; }

 private:
  std::vector<std::string> classes_;
  std::vector<std::int64_t> labels_;
};

EvalResult evaluate_on(AlwaysTwo& two, const Dataset& data) {
  Loader loader(data, *two.data.val_augment, {.batch_size = 2, .workers = 0});
  return evaluate(two.ctx, *two.model.net, *two.experiment.loss, loader);
}

// A network may have many more outputs than the data has classes: counts have the size of the data's classes.
TEST(Evaluate, CountsPredictionsOutsideDataClasses) {
  AlwaysTwo two;
  const EvalResult result = evaluate_on(two, Labelled(2, {0, 1, 1}));
  EXPECT_EQ(result.classes, 2);
  EXPECT_TRUE(result.confusion.empty());
  EXPECT_EQ(result.outside, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(result.wrong.size(), 3u);
}

TEST(Evaluate, NamesImageWithInvalidLabel) {
  AlwaysTwo two;
  for (const std::int64_t label : {-1, 4, 1 << 30}) {
    for (const std::int64_t classes : {4, 6}) {  // of the data; the model has 4
      try {
        evaluate_on(two, Labelled(classes, {0, 3, label, 1}));
        FAIL() << "label " << label << " was accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::data);
        EXPECT_NE(std::string(error.what()).find("image 2 of the dataset has the label"), std::string::npos)
            << error.what();
      }
    }
  }
}

// NaN outputs are no prediction, and in particular not one of label 0.
TEST(Evaluate, CountsNonFiniteOutputsAsWrong) {
  AlwaysTwo two;
  for (Parameter* parameter : two.model.net->parameters())
    two.ctx.stream->fill(parameter->variable.value().write(), count_of(parameter->shape), NAN);
  const EvalResult result = evaluate_on(two, Labelled(4, {0, 0, 1}));
  EXPECT_EQ(result.undefined, 3);
  EXPECT_EQ(result.scores.top1, 0);
  EXPECT_TRUE(result.confusion.empty());
  EXPECT_TRUE(result.wrong.empty());
}

TEST(Evaluate, RefusesNonFiniteScores) {
  const auto finite_error = [](const EvalResult& result) -> std::string {
    try {
      expect_finite(result, [] { return "best.safetensors"; });
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::diverged);
      return error.what();
    }
  };
  EvalResult result;
  result.images = 5, result.scores.loss = 0.5;
  EXPECT_EQ(finite_error(result), "");
  result.undefined = 2;
  EXPECT_EQ(finite_error(result), "best.safetensors: the network's outputs for 2 of 5 images are nan or infinite");
  result.undefined = 0, result.scores.loss = INFINITY;
  EXPECT_NE(finite_error(result).find("too large for the loss"), std::string::npos) << finite_error(result);
}

// Only pairs that occur are counted: a table of all pairs would take 80 GB here.
TEST(Evaluate, CountsPairsOfManyClasses) {
  constexpr std::int64_t classes = 100000;
  Context ctx;
  const auto evaluator = label_evaluator(*ctx.stream, classes, classes);
  const Tensor output = Tensor::filled(*ctx.stream, {2, classes}, 0);
  evaluator->add({Tensor(), Tensor::from<std::int32_t>(*ctx.stream, {2}, {0, classes - 1}), {0, 1}}, output);
  EvalResult result;
  evaluator->finish(result);
  EXPECT_EQ(result.confusion, (Confusion{{{0, 0}, 1}, {{classes - 1, 0}, 1}}));
  EXPECT_LT(evaluation_bytes(TargetKind::label, 32, {classes}, 1000), std::size_t(20) << 20);
}

}  // namespace
}  // namespace twiddle
