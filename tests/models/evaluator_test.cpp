#include "models/evaluation/evaluator.h"
#include "data/loader.h"
#include "framework/context.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

#include "models/config/experiment.h"

namespace twiddle {
namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();

// Returns the result for these outputs, one row per image, all of label 0.
EvalResult evaluated(const std::vector<float>& outputs, std::int64_t classes) {
  Context ctx;
  const std::int64_t images = std::ssize(outputs) / classes;
  const auto evaluator = label_evaluator(*ctx.stream, classes, classes);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(images));
  evaluator->add({Tensor(), Tensor::from(*ctx.stream, {images}, std::vector<std::int32_t>(indices.size(), 0)), indices},
                 Tensor::from(*ctx.stream, {images, classes}, outputs));
  EvalResult result;
  evaluator->finish(result);
  return result;
}

// An infinite score of the label counts as wrong in every metric.
TEST(Evaluator, CountsInfiniteScoreAsWrong) {
  const EvalResult result = evaluated({infinite, 1, 2, -infinite, 1, 2, 3, 1, 2}, 3);
  EXPECT_EQ(result.undefined, 2);
  EXPECT_DOUBLE_EQ(result.scores.top1, 1.0 / 3);
  EXPECT_DOUBLE_EQ(result.scores.top5, 1.0 / 3);
  EXPECT_EQ(result.confusion, (Confusion{{{0, 0}, 1}}));
}

// If scores are equal, the lower class comes first.
TEST(Evaluator, RanksLabelsByScore) {
  const EvalResult result = evaluated({7, 7, 0, 0, 0, 0, /**/ 1, 2, 3, 4, 5, 0, /**/ 1, 2, 3, 4, 5, 6}, 6);
  EXPECT_DOUBLE_EQ(result.scores.top1, 1.0 / 3);
  EXPECT_DOUBLE_EQ(result.scores.top5, 2.0 / 3);
  ASSERT_EQ(result.wrong.size(), 2u);
  EXPECT_EQ(result.wrong[0].predicted, 4);
  EXPECT_NEAR(result.wrong[0].probability,
              1 / (1 + std::exp(-1) + std::exp(-2) + std::exp(-3) + std::exp(-4) + std::exp(-5)), 1e-6);
}

TEST(Evaluator, KeepsMostConfidentMistakes) {
  Context ctx;
  const auto evaluator = label_evaluator(*ctx.stream, 2, 2);
  for (std::int64_t image = 0; image < 40; ++image)
    evaluator->add({Tensor(), Tensor::from<std::int32_t>(*ctx.stream, {1}, {0}), {image}},
                   Tensor::from<float>(*ctx.stream, {1, 2}, {0, static_cast<float>((7 * image) % 40)}));
  EvalResult result;
  evaluator->finish(result);
  ASSERT_EQ(result.wrong.size(), examples_kept);
  EXPECT_EQ(result.wrong[0].probability, 1);
  EXPECT_GT(result.wrong.back().probability, 0.99f);
}

// Values of scikit-learn's average_precision_score.
TEST(Evaluator, AveragePrecisionMatchesScikitLearn) {
  EXPECT_NEAR(average_precision({0.1f, 0.4f, 0.35f, 0.8f}, {false, false, true, true}), 0.5 * 1 + 0.5 * 2 / 3, 1e-12);
  EXPECT_DOUBLE_EQ(average_precision({3, 2, 1}, {true, true, false}), 1);
  EXPECT_NEAR(average_precision({1, 1, 1, 1}, {true, false, false, false}), 0.25, 1e-12);  // a tie is taken at once
}

TEST(Evaluator, MapAveragesOverOccurringLabels) {
  Context ctx;
  Stream& stream = *ctx.stream;
  const auto evaluator = several_labels_evaluator(stream, 3, 4);  // the network has an output more
  // The first label ranks the images well, the second badly; no image has the third.
  const Batch batch{
      Tensor::filled(stream, {2, 1, 1, 1}, 0), Tensor::from<float>(stream, {2, 4}, {1, 1, 0, 0, 0, 0, 0, 0}), {7, 8}};
  evaluator->add(batch, Tensor::from<float>(stream, {2, 4}, {2, -1, 0, 0, -2, 1, 0, 0}));
  EvalResult result;
  evaluator->finish(result);
  ASSERT_EQ(result.labels.size(), 3u);
  EXPECT_EQ(result.labels[0].images, 1);
  EXPECT_DOUBLE_EQ(result.labels[0].average_precision, 1);
  EXPECT_DOUBLE_EQ(result.labels[1].average_precision, 0.5);
  EXPECT_EQ(result.labels[2].images, 0);
  EXPECT_DOUBLE_EQ(result.scores.map, 0.75);
  ASSERT_EQ(result.worst.size(), 2u);
  EXPECT_EQ(result.worst[0].index, 7);
  EXPECT_EQ(result.worst[0].labels, (std::vector<std::int64_t>{0, 1}));
  EXPECT_NEAR(result.worst[0].probabilities.at(0), 1 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_TRUE(std::isnan(result.scores.top1));
}

TEST(Evaluator, MapIgnoresNonFiniteOutputs) {
  Context ctx;
  Stream& stream = *ctx.stream;
  const auto evaluator = several_labels_evaluator(stream, 1, 1);
  evaluator->add({Tensor::filled(stream, {3, 1, 1, 1}, 0), Tensor::from<float>(stream, {3, 1}, {1, 0, 0}), {0, 1, 2}},
                 Tensor::from<float>(stream, {3, 1}, {NAN, infinite, -5}));
  EvalResult result;
  evaluator->finish(result);
  EXPECT_EQ(result.undefined, 2);
  EXPECT_NEAR(result.scores.map, 1.0 / 3, 1e-12);
  EXPECT_EQ(result.worst.size(), 1u);
}

// Differences of 0.1 and 0.01 in units of 1 = 255: 20 and 40 dB.
TEST(Evaluator, PsnrIsMeanOverImages) {
  const Experiment experiment = load_experiment_text(
      "version: 1\nmodel: {input: [1, 2, 2], layers: [conv2d: {filters: 1, kernel: 1}]}\n"
      "data: {normalize: {mean: 0.5, std: 0.25}}\ntrain: {loss: mean_squared_error}\n",
      "image.yaml");
  Context ctx;
  Stream& stream = *ctx.stream;
  const auto evaluator = image_evaluator(stream, *experiment.data.val_augment);
  const Tensor targets = Tensor::filled(stream, {3, 1, 2, 2}, 0);
  evaluator->add(
      {targets, targets, {0, 1, 2}},
      Tensor::from<float>(stream, {3, 1, 2, 2}, {0.4f, 0.4f, -0.4f, 0.4f, 0.04f, 0.04f, 0.04f, 0.04f, 0, 0, 0, NAN}));
  EvalResult result;
  evaluator->finish(result);
  EXPECT_NEAR(result.scores.psnr, (20 + 40 + 0) / 3.0, 1e-4);
  EXPECT_EQ(result.undefined, 1);
  ASSERT_EQ(result.restored.size(), 2u);
  EXPECT_EQ(result.restored[0].input.pixels, std::vector<std::uint8_t>(4, 128));
  EXPECT_EQ(result.restored[0].output.pixels, (std::vector<std::uint8_t>{153, 153, 102, 153}));
}

}  // namespace
}  // namespace twiddle
