#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "layers/conv/tuner/contest.h"

namespace twiddle {

// engine  plan  ms  error  workspace  fate: every plan of a contest, the fastest first.
std::string plan_table(const std::vector<Entrant>& entrants);
nlohmann::json plans_json(const std::vector<Entrant>& entrants);

}  // namespace twiddle
