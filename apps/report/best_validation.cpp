#include "apps/report/best_validation.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "framework/atomic_file.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "models/config/json_text.h"

namespace twiddle {
namespace {

constexpr const char* fingerprint_key = "validation_set";

// Returns the best epoch's validation from the file; empty if there is none, or one of another epoch. Throws an Error
// of kind data if it does not fit the data: a later report would show images or classes that do not exist.
std::optional<ValidatedEpoch> read_validation(const std::string& path, std::int64_t best_epoch,
                                              const BestValidation::Data& data) {
  if (!std::filesystem::exists(path) || best_epoch == 0) return std::nullopt;
  if (!std::filesystem::is_regular_file(path)) throw Error(ErrorKind::data, "it is not a regular file");
  std::ifstream file(path);
  if (!file) throw Error(ErrorKind::data, "it cannot be opened");
  const nlohmann::json kept = nlohmann::json::parse(file, nullptr, false);
  if (!kept.is_object()) throw Error(ErrorKind::data, "it is not a JSON object");
  if (kept.value("epoch", nlohmann::json()) != best_epoch) return std::nullopt;
  auto result = std::make_shared<const EvalResult>(evaluation_from_json(kept, data.set));
  if (kept.value(fingerprint_key, nlohmann::json(data.fingerprint)) != data.fingerprint)
    throw Error(ErrorKind::data, "it is of other images or classes");
  return ValidatedEpoch{best_epoch, std::move(result)};
}

}  // namespace

BestValidation::BestValidation(const std::string& run_folder, std::int64_t best_epoch, std::string metric, Data data)
    : file_((std::filesystem::path(run_folder) / "best.json").string()),
      metric_(std::move(metric)),
      data_(std::move(data)) {
  try {
    validated_ = read_validation(file_, best_epoch, data_);
  } catch (const Error& error) {
    discarded_ = join(printable(file_), " does not match the validation set: ", error.what());
  }
}

void BestValidation::take(const EpochReport& report, std::shared_ptr<const EvalResult> result,
                          std::int64_t best_epoch) {
  if (validated_ && validated_->epoch == best_epoch) return;
  validated_ = {report.epoch, std::move(result)};
  if (!report.best) return;
  nlohmann::json json = to_json(*validated_->result);
  json["epoch"] = report.epoch;
  json["metric"] = metric_;
  json[fingerprint_key] = data_.fingerprint;
  write_file_atomically(file_, json_text(json) + "\n");
}

}  // namespace twiddle
