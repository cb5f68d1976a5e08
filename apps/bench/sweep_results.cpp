#include "apps/bench/sweep_results.h"

#include <nlohmann/json.hpp>

#include "framework/error.h"
#include "framework/printable.h"
#include "framework/text.h"
#include "models/config/json_text.h"

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

SweepResults::SweepResults(const std::vector<std::string>& files, std::string conditions)
    : conditions_(std::move(conditions)) {
  if (files.empty()) return;
  const std::string& first = files.front();
  const bool whole = read(first);
  for (std::size_t i = 1; i < files.size(); ++i) read(files[i]);
  out_.open(first, std::ios::app);
  if (!whole) out_ << '\n';
  if (!out_)
    throw Error(ErrorKind::data, "'" + printable(first) + "' cannot be written; --results names another place");
}

SweepResults SweepResults::recorded(const std::vector<std::string>& files) {
  SweepResults results;
  for (const std::string& file : files) {
    if (!std::ifstream(file)) throw Error(ErrorKind::data, "'" + printable(file) + "' cannot be read");
    results.read(file);
  }
  if (results.rows().empty()) throw Error(ErrorKind::data, "no rows of a sweep in " + join_names(files));
  return results;
}

// Skips truncated lines, which are then measured again.
bool SweepResults::read(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  bool whole = true;
  while (std::getline(in, line)) {
    whole = !in.eof();
    const Json json = Json::parse(line, nullptr, false);
    try {
      if (!json.is_object()) continue;
      const std::string conditions = json.at("on");
      if (!conditions_.empty() && conditions != conditions_) continue;
      const SweepRow row = row_of(json);
      conditions_ = conditions;
      if (known_.insert({row.shape, row.engine}).second) rows_.push_back(row);
    } catch (const Json::exception&) {  // written by another version
    }
  }
  return whole;
}

bool SweepResults::knows(const SweepShape& shape, const std::string& engine) const {
  return known_.count({shape, engine}) > 0;
}

void SweepResults::add(const SweepRow& row) {
  rows_.push_back(row);
  known_.insert({row.shape, row.engine});
  if (!out_.is_open()) return;
  out_ << json_text(to_json(row, conditions_)) << '\n' << std::flush;
  if (!out_) throw Error(ErrorKind::failed, "the sweep's results cannot be written any more: is the disk full?");
}

}  // namespace twiddle
