#include "apps/best_validation.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/atomic_file.h"
#include "models/evaluation_json.h"
#include "models/json_text.h"

namespace twiddle {

BestValidation::BestValidation(const std::string& run_folder, std::int64_t best_epoch, std::string metric)
    : file_((std::filesystem::path(run_folder) / "best.json").string()), metric_(std::move(metric)) {
  std::ifstream file(file_);
  try {
    const nlohmann::json kept = nlohmann::json::parse(file);
    if (kept.at("epoch") == best_epoch) validated_ = {best_epoch, evaluation_from_json(kept)};
  } catch (const std::exception&) {  // missing, or not ours: the next epochs tell
  }
}

void BestValidation::take(const EpochReport& report, const EvalResult& result, std::int64_t best_epoch) {
  if (validated_ && validated_->epoch == best_epoch) return;
  validated_ = {report.epoch, result};
  if (!report.best) return;
  nlohmann::json json = to_json(result);
  json["epoch"] = report.epoch;
  json["metric"] = metric_;
  write_file_atomically(file_, json_text(json) + "\n");
}

}  // namespace twiddle
