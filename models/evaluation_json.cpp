#include "models/evaluation_json.h"

#include <nlohmann/json.hpp>

namespace twiddle {

nlohmann::json to_json(const EvalResult& result) {
  nlohmann::json confusion = nlohmann::json::array(), mistakes = nlohmann::json::array();
  const auto classes = static_cast<std::size_t>(result.classes);
  for (std::size_t cell = 0; cell < result.confusion.size(); ++cell)  // of many classes nearly all are nought
    if (result.confusion[cell] > 0) confusion.push_back({cell / classes, cell % classes, result.confusion[cell]});
  for (const EvalResult::Wrong& wrong : result.wrong)
    mistakes.push_back({{"image", wrong.index},
                        {"actual", wrong.actual},
                        {"predicted", wrong.predicted},
                        {"probability", wrong.probability}});
  nlohmann::json json = {{"images", result.images},
                         {"confusion", confusion},
                         {"outside", result.outside},
                         {"undefined", result.undefined},
                         {"mistakes", mistakes}};
  for (const Metric& metric : metrics_of(TargetKind::label)) json[metric.name] = metric.of(result.scores);
  return json;
}

EvalResult evaluation_from_json(const nlohmann::json& json) {
  EvalResult result;
  result.images = json.at("images");
  for (const Metric& metric : metrics_of(TargetKind::label))  // null: not a number
    if (const nlohmann::json& score = json.at(metric.name); score.is_number()) result.scores.*metric.score = score;
  result.outside = json.at("outside").get<std::vector<std::int64_t>>();
  result.undefined = json.at("undefined");
  const std::size_t classes = result.outside.size();
  result.classes = static_cast<std::int64_t>(classes);
  result.confusion.assign(classes * classes, 0);
  for (const nlohmann::json& cell : json.at("confusion"))
    result.confusion.at(cell.at(0).get<std::size_t>() * classes + cell.at(1).get<std::size_t>()) = cell.at(2);
  for (const nlohmann::json& wrong : json.at("mistakes"))
    result.wrong.push_back(
        {wrong.at("image"), wrong.at("actual"), wrong.at("predicted"), wrong.at("probability").get<float>()});
  return result;
}

}  // namespace twiddle
