#include "apps/sweep_results.h"

#include <nlohmann/json.hpp>

#include "framework/error.h"

namespace twiddle {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const SweepRow& row, const std::string& conditions) {
  Json json = {{"on", conditions},
               {"batch", row.shape.batch},
               {"channels", row.shape.channels},
               {"filters", row.shape.filters},
               {"kernel", row.shape.kernel},
               {"output", row.shape.output},
               {"engine", row.engine}};
  if (row.failure.empty())
    json.update(Json{{"ms", row.milliseconds}, {"error", row.error}});
  else
    json["failure"] = row.failure;
  return json;
}

SweepRow row_of(const Json& json) {
  SweepRow row{{json.at("batch"), json.at("channels"), json.at("filters"), json.at("kernel"), json.at("output")},
               json.at("engine"),
               {},
               0,
               json.value("failure", "")};
  if (!row.failure.empty()) return row;
  row.milliseconds = json.at("ms");
  row.error = json.at("error");
  return row;
}

}  // namespace

SweepResults::SweepResults(const std::string& file, std::string conditions) : conditions_(std::move(conditions)) {
  if (file.empty()) return;
  read(file);
  out_.open(file, std::ios::app);
  if (!out_) throw Error(ErrorKind::data, "'" + file + "' cannot be written; --results names another place");
}

// A line that was cut short is measured again.
void SweepResults::read(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  bool whole = true;
  while (std::getline(in, line)) {
    whole = !in.eof();
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object() || json.value("on", "") != conditions_) continue;
    try {
      const SweepRow row = row_of(json);
      if (known_.insert({row.shape, row.engine}).second) rows_.push_back(row);
    } catch (const Json::exception&) {  // of another version
    }
  }
  in.close();
  if (!whole) std::ofstream(file, std::ios::app) << '\n';
}

bool SweepResults::knows(const SweepShape& shape, const std::string& engine) const {
  return known_.count({shape, engine}) > 0;
}

void SweepResults::add(const SweepRow& row) {
  rows_.push_back(row);
  known_.insert({row.shape, row.engine});
  if (!out_.is_open()) return;
  out_ << to_json(row, conditions_).dump(-1, ' ', false, Json::error_handler_t::replace) << '\n' << std::flush;
  if (!out_) throw Error(ErrorKind::failed, "the sweep's results cannot be written any more: is the disk full?");
}

}  // namespace twiddle
