#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "layers/conv/tuner/autotuner.h"
#include "layers/conv/tuner/timing.h"

namespace twiddle {

// Returns a table of all benchmarked plans, the fastest first: engine  plan  ms  error  workspace  why it lost.
std::string plan_table(const std::vector<Candidate>& candidates);
void to_json(nlohmann::json& json, const Candidate& candidate);
// Writes median_ms, p10_ms, p90_ms and samples.
nlohmann::json to_json(const Timing& timing);

}  // namespace twiddle
