#include "models/evaluation_json.h"

#include <nlohmann/json.hpp>

namespace twiddle {

namespace {

void put_label_counts(const EvalResult& result, nlohmann::json& json) {
  nlohmann::json confusion = nlohmann::json::array(), mistakes = nlohmann::json::array();
  const auto classes = static_cast<std::size_t>(result.classes);
  for (std::size_t cell = 0; cell < result.confusion.size(); ++cell)  // of many classes nearly all are nought
    if (result.confusion[cell] > 0) confusion.push_back({cell / classes, cell % classes, result.confusion[cell]});
  for (const EvalResult::Wrong& wrong : result.wrong)
    mistakes.push_back({{"image", wrong.index},
                        {"actual", wrong.actual},
                        {"predicted", wrong.predicted},
                        {"probability", wrong.probability}});
  json.update({{"confusion", confusion}, {"outside", result.outside}, {"mistakes", mistakes}});
}

void put_several_labels(const EvalResult& result, nlohmann::json& json) {
  nlohmann::json labels = nlohmann::json::array(), worst = nlohmann::json::array();
  for (const EvalResult::LabelScore& score : result.labels) labels.push_back({score.images, score.average_precision});
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

void take_label_counts(const nlohmann::json& json, EvalResult& result) {
  result.outside = json.at("outside").get<std::vector<std::int64_t>>();
  const std::size_t classes = result.outside.size();
  result.classes = static_cast<std::int64_t>(classes);
  result.confusion.assign(classes * classes, 0);
  for (const nlohmann::json& cell : json.at("confusion"))
    result.confusion.at(cell.at(0).get<std::size_t>() * classes + cell.at(1).get<std::size_t>()) = cell.at(2);
  for (const nlohmann::json& wrong : json.at("mistakes"))
    result.wrong.push_back(
        {wrong.at("image"), wrong.at("actual"), wrong.at("predicted"), wrong.at("probability").get<float>()});
}

void take_several_labels(const nlohmann::json& json, EvalResult& result) {
  for (const nlohmann::json& score : json.at("labels")) result.labels.push_back({score.at(0), score.at(1)});
  for (const nlohmann::json& image : json.at("worst"))
    result.worst.push_back({image.at("image"), image.at("loss"), image.at("labels").get<std::vector<std::int64_t>>(),
                            image.at("probabilities").get<std::vector<float>>()});
}

void take_restored(const nlohmann::json& json, EvalResult& result) {
  for (const nlohmann::json& image : json.at("restored"))
    result.restored.push_back({image.at("image"), image.at("psnr"), {}, {}, {}});
}

}  // namespace

nlohmann::json to_json(const EvalResult& result) {
  nlohmann::json json = {{"images", result.images}, {"undefined", result.undefined}};
  for (const Metric& metric : metrics_of(result.target)) json[metric.name] = metric.of(result.scores);
  if (result.target == TargetKind::label)
    put_label_counts(result, json);
  else if (result.target == TargetKind::labels)
    put_several_labels(result, json);
  else
    put_restored(result, json);
  return json;
}

EvalResult evaluation_from_json(const nlohmann::json& json) {
  EvalResult result;
  result.target = json.contains("labels")     ? TargetKind::labels
                  : json.contains("restored") ? TargetKind::input
                                              : TargetKind::label;
  result.images = json.at("images"), result.undefined = json.at("undefined");
  for (const Metric& metric : metrics_of(result.target))  // null: not a number
    if (const nlohmann::json& score = json.at(metric.name); score.is_number()) result.scores.*metric.score = score;
  if (result.target == TargetKind::label)
    take_label_counts(json, result);
  else if (result.target == TargetKind::labels)
    take_several_labels(json, result);
  else
    take_restored(json, result);
  return result;
}

}  // namespace twiddle
