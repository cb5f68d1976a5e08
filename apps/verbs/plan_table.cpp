#include "apps/verbs/plan_table.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "apps/command_line/text_table.h"
#include "framework/text.h"

namespace twiddle {

std::string plan_table(const std::vector<Entrant>& entrants) {
  TextTable table({"engine", "plan", "ms", "error", "workspace", "why it lost"});
  for (const Entrant& entrant : entrants) {
    const ConvPlan::Facts& facts = entrant.facts;
    table.add({facts.engine, facts.name.empty() ? "-" : facts.name,
               std::isfinite(entrant.milliseconds) ? fmt::format("{:.3f}", entrant.milliseconds) : "-",
               std::isfinite(entrant.error) ? fmt::format("{:.1e}", entrant.error) : "-",
               format_bytes(facts.scratch_bytes),
               !entrant.reason.empty()         ? entrant.reason
               : &entrant == &entrants.front() ? "the fastest alone"
                                               : "slower"});
  }
  return table.text();
}

void to_json(nlohmann::json& json, const Entrant& entrant) {
  const ConvPlan::Facts& facts = entrant.facts;
  json = {{"engine", facts.engine}, {"plan", facts.name}, {"workspace_bytes", facts.scratch_bytes}};
  if (std::isfinite(entrant.milliseconds)) json["ms"] = entrant.milliseconds;
  if (std::isfinite(entrant.error)) json["error"] = entrant.error;
  if (!entrant.reason.empty()) json["reason"] = entrant.reason;
}

nlohmann::json to_json(const Timing& timing) {
  return {{"median_ms", timing.quantile(0.5)},
          {"p10_ms", timing.quantile(0.1)},
          {"p90_ms", timing.quantile(0.9)},
          {"samples", timing.samples.size()}};
}

}  // namespace twiddle
