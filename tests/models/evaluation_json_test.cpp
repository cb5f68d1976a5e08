#include "models/evaluation_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace twiddle {
namespace {

// Three classes; one image was taken for an output that is no class, and one for nothing.
EvalResult example() {
  EvalResult result;
  result.scores.loss = 0.5, result.scores.top1 = 0.25, result.scores.top5 = 0.75;
  result.images = 4, result.classes = 3;
  result.confusion = {0, 0, 1, 0, 1, 0, 0, 0, 0};
  result.outside = {0, 0, 1};
  result.undefined = 1;
  result.wrong = {{7, 0, 2, 0.5f}};
  return result;
}

TEST(EvaluationJson, TellsAllThatWasCounted) {
  const nlohmann::json json = to_json(example());
  EXPECT_EQ(json.at("images"), 4);
  EXPECT_EQ(json.at("confusion"), nlohmann::json::parse("[[0, 2, 1], [1, 1, 1]]"));
  EXPECT_EQ(json.at("outside"), nlohmann::json::parse("[0, 0, 1]"));
  EXPECT_EQ(json.at("undefined"), 1);
  EXPECT_EQ(json.at("mistakes").at(0).at("image"), 7);
}

TEST(EvaluationJson, ComesBackAsItWas) {
  const EvalResult result = example(), back = evaluation_from_json(to_json(result));
  EXPECT_EQ(back.scores.loss, 0.5);
  EXPECT_EQ(back.scores.top1, 0.25);
  EXPECT_EQ(back.scores.top5, 0.75);
  EXPECT_EQ(back.images, result.images);
  EXPECT_EQ(back.classes, result.classes);
  EXPECT_EQ(back.confusion, result.confusion);
  EXPECT_EQ(back.outside, result.outside);
  EXPECT_EQ(back.undefined, result.undefined);
  EXPECT_EQ(back.wrong.at(0).predicted, 2);
  EXPECT_EQ(back.wrong.at(0).probability, 0.5f);
}

TEST(EvaluationJson, OfSeveralLabelsComesBackAsItWas) {
  EvalResult result;
  result.target = TargetKind::labels, result.images = 2;
  result.scores.loss = 0.5, result.scores.map = 0.75;
  result.labels = {{1, 1}, {1, 0.5}};
  result.worst = {{7, 0.9, {0, 1}, {0.25f, 0.5f}}};
  const EvalResult back = evaluation_from_json(to_json(result));
  EXPECT_EQ(back.target, TargetKind::labels);
  EXPECT_EQ(back.scores.map, 0.75);
  EXPECT_EQ(back.labels.at(1).average_precision, 0.5);
  EXPECT_EQ(back.worst.at(0).labels, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(back.worst.at(0).probabilities, (std::vector<float>{0.25f, 0.5f}));
}

TEST(EvaluationJson, OfImagesKeepsWhatTheyScored) {
  EvalResult result;
  result.target = TargetKind::input, result.scores.loss = 0.5, result.scores.psnr = 20;
  result.restored = {{3, 19.5, {1, 1, 1, {9}}, {1, 1, 1, {9}}, {1, 1, 1, {9}}}};
  const EvalResult back = evaluation_from_json(to_json(result));
  EXPECT_EQ(back.scores.psnr, 20);
  EXPECT_EQ(back.restored.at(0).psnr, 19.5);
  EXPECT_TRUE(back.restored.at(0).output.pixels.empty());
}

TEST(EvaluationJson, RefusesCellsBeyondTheClasses) {
  nlohmann::json json = to_json(example());
  json["confusion"] = {{3, 0, 1}};
  EXPECT_ANY_THROW(evaluation_from_json(json));
}

}  // namespace
}  // namespace twiddle
