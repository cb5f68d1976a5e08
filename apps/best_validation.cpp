#include "apps/best_validation.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "models/atomic_file.h"

namespace twiddle {
namespace {

using PlainJson = nlohmann::json;

PlainJson to_json(const ValidatedEpoch& validated) {
  const EvalResult& result = validated.result;
  std::size_t classes = 0;
  while (classes * classes < result.confusion.size()) ++classes;
  PlainJson confusion = PlainJson::array(), mistakes = PlainJson::array();
  for (std::size_t cell = 0; cell < result.confusion.size(); ++cell)  // of many classes nearly all are nought
    if (result.confusion[cell] > 0) confusion.push_back({cell / classes, cell % classes, result.confusion[cell]});
  for (const EvalResult::Wrong& wrong : result.wrong)
    mistakes.push_back({{"image", wrong.index},
                        {"actual", wrong.actual},
                        {"predicted", wrong.predicted},
                        {"probability", wrong.probability}});
  return {{"epoch", validated.epoch}, {"images", result.images}, {"loss", result.loss},    {"top1", result.top1},
          {"top5", result.top5},      {"outputs", classes},      {"confusion", confusion}, {"mistakes", mistakes}};
}

ValidatedEpoch from_json(const PlainJson& file) {
  ValidatedEpoch validated{file.at("epoch"), {}};
  EvalResult& result = validated.result;
  result.images = file.at("images"), result.loss = file.at("loss");
  result.top1 = file.at("top1"), result.top5 = file.at("top5");
  const auto classes = file.at("outputs").get<std::size_t>();
  result.confusion.assign(classes * classes, 0);
  for (const PlainJson& cell : file.at("confusion"))
    result.confusion.at(cell.at(0).get<std::size_t>() * classes + cell.at(1).get<std::size_t>()) = cell.at(2);
  for (const PlainJson& wrong : file.at("mistakes"))
    result.wrong.push_back(
        {wrong.at("image"), wrong.at("actual"), wrong.at("predicted"), wrong.at("probability").get<float>()});
  return validated;
}

}  // namespace

BestValidation::BestValidation(const std::string& run_folder, std::int64_t best_epoch)
    : file_((std::filesystem::path(run_folder) / "best.json").string()) {
  std::ifstream file(file_);
  try {
    ValidatedEpoch kept = from_json(PlainJson::parse(file));
    if (kept.epoch == best_epoch) validated_ = std::move(kept);
  } catch (const std::exception&) {  // missing, or not ours: the next epochs tell
  }
}

void BestValidation::take(const EpochReport& report, const EvalResult& result, std::int64_t best_epoch) {
  if (validated_ && validated_->epoch == best_epoch) return;
  validated_ = {report.epoch, result};
  if (report.best) write_file_atomically(file_, to_json(*validated_).dump() + "\n");
}

}  // namespace twiddle
