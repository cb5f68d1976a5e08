#include "apps/verbs/plan_table.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/command_line/text_table.h"
#include "framework/text.h"

namespace twiddle {

std::string plan_table(const std::vector<Candidate>& candidates) {
  TextTable table({"engine", "plan", "ms", "error", "workspace", "why it lost"});
  for (const Candidate& candidate : candidates) {
    const ConvPlan::Facts& facts = candidate.facts;
    table.add({facts.engine, facts.name.empty() ? "-" : facts.name,
               std::isfinite(candidate.milliseconds) ? fmt::format("{:.3f}", candidate.milliseconds) : "-",
               std::isfinite(candidate.error) ? fmt::format("{:.1e}", candidate.error) : "-",
               format_bytes(facts.scratch_bytes),
               !candidate.reason.empty()           ? candidate.reason
               : &candidate == &candidates.front() ? "the fastest alone"
                                                   : "slower"});
  }
  return table.text();
}

void to_json(nlohmann::json& json, const Candidate& candidate) {
  const ConvPlan::Facts& facts = candidate.facts;
  json = {{"engine", facts.engine}, {"plan", facts.name}, {"workspace_bytes", facts.scratch_bytes}};
  if (std::isfinite(candidate.milliseconds)) json["ms"] = candidate.milliseconds;
  if (std::isfinite(candidate.error)) json["error"] = candidate.error;
  if (!candidate.reason.empty()) json["reason"] = candidate.reason;
}

nlohmann::json to_json(const Timing& timing) {
  return {{"median_ms", timing.quantile(0.5)},
          {"p10_ms", timing.quantile(0.1)},
          {"p90_ms", timing.quantile(0.9)},
          {"samples", timing.samples.size()}};
}

}  // namespace twiddle
