#pragma once
#include <string>
#include <vector>

#include "apps/report/metrics.h"

namespace twiddle {

// Returns a run's loss, accuracy, learning rate and speed as charts over epochs, or over steps during the first
// epoch. Omits charts of values that were never measured.
std::vector<std::string> run_charts(const History& history);

}  // namespace twiddle
