#pragma once
#include <string>
#include <vector>

#include "apps/report/metrics.h"

namespace twiddle {

// A run's loss, accuracy, learning rate and speed as charts over the same epochs (over steps while no epoch is done);
// what was never measured has none.
std::vector<std::string> run_charts(const History& history);

}  // namespace twiddle
