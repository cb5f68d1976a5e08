#include "models/evaluation/evaluation_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/error.h"

namespace twiddle {
namespace {

// Three classes; one image was predicted as an output that is not a class, and one has no prediction.
constexpr EvaluatedSet example_set{.images = 4, .classes = 3, .outputs = 5};

EvalResult example() {
  EvalResult result;
  result.scores.loss = 0.5, result.scores.top1 = 0.25, result.scores.top5 = 0.75;
  result.images = 4, result.classes = 3;
  result.confusion = {{{0, 2}, 1}, {{1, 1}, 1}};
  result.outside = {0, 0, 1};
  result.undefined = 1;
  result.wrong = {{3, 0, 2, 0.5f}};
  return result;
}

TEST(EvaluationJson, HoldsAllCounts) {
  const nlohmann::json json = to_json(example());
  EXPECT_EQ(json.at("images"), 4);
  EXPECT_EQ(json.at("confusion"), nlohmann::json::parse("[[0, 2, 1], [1, 1, 1]]"));
  EXPECT_EQ(json.at("outside"), nlohmann::json::parse("[0, 0, 1]"));
  EXPECT_EQ(json.at("undefined"), 1);
  EXPECT_EQ(json.at("mistakes").at(0).at("image"), 3);
}

TEST(EvaluationJson, RoundTrips) {
  const EvalResult result = example(), back = evaluation_from_json(to_json(result), example_set);
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

TEST(EvaluationJson, RoundTripsSeveralLabels) {
  EvalResult result;
  result.target = TargetKind::labels, result.images = 2;
  result.scores.loss = 0.5, result.scores.map = 0.75;
  result.labels = {{1, 1}, {1, 0.5}, {0}};
  result.worst = {{1, 0.9, {0, 1}, {0.25f, 0.5f, 0}}};
  EXPECT_TRUE(to_json(result).at("labels").at(2).at(1).is_null());  // no image has the label
  const EvalResult back = evaluation_from_json(to_json(result), {TargetKind::labels, 2, 3, 3});
  EXPECT_EQ(back.target, TargetKind::labels);
  EXPECT_EQ(back.scores.map, 0.75);
  EXPECT_EQ(back.labels.at(1).average_precision, 0.5);
  EXPECT_EQ(back.worst.at(0).labels, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(back.worst.at(0).probabilities, (std::vector<float>{0.25f, 0.5f, 0}));
}

TEST(EvaluationJson, RoundTripsImageScores) {
  EvalResult result;
  result.target = TargetKind::input, result.images = 4, result.scores.loss = 0.5, result.scores.psnr = 20;
  result.restored = {{3, 19.5, {1, 1, 1, {9}}, {1, 1, 1, {9}}, {1, 1, 1, {9}}}};
  const EvalResult back = evaluation_from_json(to_json(result), {TargetKind::input, 4, 0, 3});
  EXPECT_EQ(back.scores.psnr, 20);
  EXPECT_EQ(back.restored.at(0).psnr, 19.5);
  EXPECT_TRUE(back.restored.at(0).output.pixels.empty());
}

std::string json_refusal(const nlohmann::json& json, const EvaluatedSet& set = example_set) {
  try {
    evaluation_from_json(json, set);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::data);
    return error.what();
  }
  return "taken";
}

TEST(EvaluationJson, RefusesEvaluationOfAnotherSet) {
  const nlohmann::json json = to_json(example());
  EXPECT_EQ(json_refusal(json, {.images = 5, .classes = 3, .outputs = 5}), "it has 4 images, expected 5");
  EXPECT_EQ(json_refusal(json, {.images = 5, .classes = 3, .outputs = 5, .may_skip = true}), "taken");
  EXPECT_EQ(json_refusal(json, {.images = 3, .classes = 3, .outputs = 5, .may_skip = true}),
            "it has 4 images, expected 3");
  EXPECT_EQ(json_refusal(json, {.images = 4, .classes = 2, .outputs = 5}), "it has 3 classes, expected 2");
  EXPECT_EQ(json_refusal(json, {TargetKind::labels, 4, 3, 5}), "it has no 'map'");
}

TEST(EvaluationJson, RefusesValuesOutOfRange) {
  for (const char* patch :
       {R"({"images": -4})", R"({"images": 4.0})", R"({"images": 18446744073709551615})", R"({"images": null})",
        R"({"undefined": 5})", R"({"loss": "0.5"})", R"({"confusion": [[3, 0, 1], [1, 1, 1]]})",
        R"({"confusion": [[0, 2, 1], [1, 1, 2]]})", R"({"confusion": [[0, 2, 1]]})", R"({"confusion": [[0, 2]]})",
        R"({"confusion": {"a": [0, 2, 1]}})", R"({"outside": [0, 0, 1e300]})",
        R"({"mistakes": [{"image": 1000000000000000, "actual": 0, "predicted": 2, "probability": 0.5}]})",
        R"({"mistakes": [{"image": 3, "actual": 0, "predicted": 5, "probability": 0.5}]})",
        R"({"mistakes": [{"image": 3, "actual": 0, "predicted": 2, "probability": 2}]})", R"({"mistakes": [7]})"}) {
    nlohmann::json json = to_json(example());
    json.update(nlohmann::json::parse(patch));
    EXPECT_NE(json_refusal(json), "taken") << patch;
  }
  EXPECT_NE(json_refusal(nlohmann::json::parse("[1]")), "taken");
}

}  // namespace
}  // namespace twiddle
