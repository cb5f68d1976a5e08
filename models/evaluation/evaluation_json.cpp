#include "models/evaluation/evaluation_json.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "framework/error.h"

namespace twiddle {

namespace {

// null: not measured, or not finite.
nlohmann::json score_json(double score) {
  return std::isfinite(score) ? nlohmann::json(score) : nlohmann::json();
}

void put_label_counts(const EvalResult& result, nlohmann::json& json) {
  nlohmann::json confusion = nlohmann::json::array(), mistakes = nlohmann::json::array();
  for (const auto& [pair, images] : result.confusion) confusion.push_back({pair.first, pair.second, images});
  for (const EvalResult::Wrong& wrong : result.wrong)
    mistakes.push_back({{"image", wrong.index},
                        {"actual", wrong.actual},
                        {"predicted", wrong.predicted},
                        {"probability", wrong.probability}});
  json.update({{"confusion", confusion}, {"outside", result.outside}, {"mistakes", mistakes}});
}

void put_several_labels(const EvalResult& result, nlohmann::json& json) {
  nlohmann::json labels = nlohmann::json::array(), worst = nlohmann::json::array();
  for (const EvalResult::LabelScore& score : result.labels)
    labels.push_back({score.images, score_json(score.average_precision)});
  for (const EvalResult::Scored& image : result.worst)
    worst.push_back({{"image", image.index},
                     {"loss", image.loss},
                     {"labels", image.labels},
                     {"probabilities", image.probabilities}});
  json.update({{"labels", labels}, {"worst", worst}});
}

void put_restored(const EvalResult& result, nlohmann::json& json) {
  nlohmann::json restored = nlohmann::json::array();
  for (const EvalResult::Restored& image : result.restored)
    restored.push_back({{"image", image.index}, {"psnr", image.psnr}});
  json["restored"] = restored;
}

[[noreturn]] void refuse_evaluation(const std::string& what) {
  throw Error(ErrorKind::data, what);
}

const nlohmann::json& json_member(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) refuse_evaluation(join("it has no '", key, "'"));
  return *found;
}

const nlohmann::json& list_in(const nlohmann::json& object, const char* key) {
  const nlohmann::json& list = json_member(object, key);
  if (!list.is_array()) refuse_evaluation(join("'", key, "' is not a list"));
  return list;
}

// A row of a list, such as [actual, predicted, images].
const nlohmann::json& row_of(const nlohmann::json& row, std::size_t length, const char* key) {
  if (!row.is_array() || row.size() != length)
    refuse_evaluation(join("'", key, "' has a row that is not ", length, " numbers"));
  return row;
}

std::int64_t whole_number(const nlohmann::json& value, const char* key, std::int64_t most) {
  const bool fits =
      most >= 0 && (value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                               : value.is_number_integer() && value.get<std::int64_t>() >= 0);
  if (!fits) refuse_evaluation(join("'", key, "' has a value that is not a whole number from 0 to ", most));
  return value.get<std::int64_t>();
}

std::int64_t label_in(const nlohmann::json& value, const char* key, std::int64_t labels) {
  return whole_number(value, key, labels - 1);
}

double number_from(const nlohmann::json& value, const char* key, double least, double most) {
  const double number = value.is_number() ? value.get<double>() : Scores::unknown;
  if (!(number >= least && number <= most))
    refuse_evaluation(join("'", key, "' has a value that is not a number from ", least, " to ", most));
  return number;
}

constexpr double largest_number = std::numeric_limits<double>::max();

// The examples of an evaluation: objects that each name an image of the set.
template <class Take>
void for_each_example(const nlohmann::json& json, const char* key, const EvaluatedSet& set, const Take& take) {
  const nlohmann::json& examples = list_in(json, key);
  if (examples.size() > examples_kept) refuse_evaluation(join("'", key, "' has more than ", examples_kept, " images"));
  for (const nlohmann::json& example : examples)
    take(example, label_in(json_member(example, "image"), "image", set.images));
}

void take_label_counts(const nlohmann::json& json, const EvaluatedSet& set, EvalResult& result) {
  const nlohmann::json& outside = list_in(json, "outside");
  if (std::ssize(outside) != set.classes)
    refuse_evaluation(join("it has ", outside.size(), " classes, expected ", set.classes));
  result.classes = set.classes;
  std::int64_t left = result.images - result.undefined;  // not counted so far
  const auto count = [&left](const nlohmann::json& images, const char* key) {
    const std::int64_t counted = whole_number(images, key, left);
    left -= counted;
    return counted;
  };
  for (const nlohmann::json& images : outside) result.outside.push_back(count(images, "outside"));
  for (const nlohmann::json& cell : list_in(json, "confusion")) {
    const nlohmann::json& row = row_of(cell, 3, "confusion");
    const std::pair pair(label_in(row[0], "confusion", set.classes), label_in(row[1], "confusion", set.classes));
    result.confusion[pair] += count(row[2], "confusion");
  }
  if (left != 0) refuse_evaluation(join("'confusion' and 'outside' count ", left, " images too few"));
  for_each_example(json, "mistakes", set, [&](const nlohmann::json& wrong, std::int64_t image) {
    result.wrong.push_back({image, label_in(json_member(wrong, "actual"), "actual", set.classes),
                            label_in(json_member(wrong, "predicted"), "predicted", set.outputs),
                            static_cast<float>(number_from(json_member(wrong, "probability"), "probability", 0, 1))});
  });
}

void take_several_labels(const nlohmann::json& json, const EvaluatedSet& set, EvalResult& result) {
  const nlohmann::json& labels = list_in(json, "labels");
  if (std::ssize(labels) != set.classes)
    refuse_evaluation(join("it has ", labels.size(), " classes, expected ", set.classes));
  for (const nlohmann::json& score : labels) {
    const nlohmann::json& row = row_of(score, 2, "labels");
    const std::int64_t images = whole_number(row[0], "labels", result.images);
    result.labels.push_back({images, row[1].is_null() ? Scores::unknown : number_from(row[1], "labels", 0, 1)});
  }
  for_each_example(json, "worst", set, [&](const nlohmann::json& image, std::int64_t index) {
    EvalResult::Scored scored{index, number_from(json_member(image, "loss"), "loss", 0, largest_number), {}, {}};
    const nlohmann::json &labels_of = list_in(image, "labels"), &probabilities = list_in(image, "probabilities");
    if (std::ssize(labels_of) > set.classes || std::ssize(probabilities) != set.classes)
      refuse_evaluation(join("'worst' has an image without one probability for each of ", set.classes, " classes"));
    for (const nlohmann::json& label : labels_of) scored.labels.push_back(label_in(label, "labels", set.classes));
    for (const nlohmann::json& probability : probabilities)
      scored.probabilities.push_back(static_cast<float>(number_from(probability, "probabilities", 0, 1)));
    result.worst.push_back(std::move(scored));
  });
}

void take_restored(const nlohmann::json& json, const EvaluatedSet& set, EvalResult& result) {
  for_each_example(json, "restored", set, [&](const nlohmann::json& image, std::int64_t index) {
    result.restored.push_back(
        {index, number_from(json_member(image, "psnr"), "psnr", -largest_number, largest_number), {}, {}, {}});
  });
}

}  // namespace

nlohmann::json to_json(const EvalResult& result) {
  nlohmann::json json = {{"images", result.images}, {"undefined", result.undefined}};
  for (const Metric& metric : metrics_of(result.target)) json[metric.name] = score_json(metric.of(result.scores));
  if (result.target == TargetKind::label)
    put_label_counts(result, json);
  else if (result.target == TargetKind::labels)
    put_several_labels(result, json);
  else
    put_restored(result, json);
  return json;
}

EvalResult evaluation_from_json(const nlohmann::json& json, const EvaluatedSet& set) {
  EvalResult result;
  result.target = set.target;
  result.images = whole_number(json_member(json, "images"), "images", std::numeric_limits<std::int64_t>::max());
  if (result.images > set.images || (result.images < set.images && !set.may_skip))
    refuse_evaluation(join("it has ", result.images, " images, expected ", set.images));
  result.undefined = whole_number(json_member(json, "undefined"), "undefined", result.images);
  for (const Metric& metric : metrics_of(result.target))  // null: not a number
    if (const nlohmann::json& score = json_member(json, metric.name); !score.is_null())
      result.scores.*metric.score = number_from(score, metric.name, -largest_number, largest_number);
  if (result.target == TargetKind::label)
    take_label_counts(json, set, result);
  else if (result.target == TargetKind::labels)
    take_several_labels(json, set, result);
  else
    take_restored(json, set, result);
  return result;
}

}  // namespace twiddle
