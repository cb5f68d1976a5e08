#pragma once
#include <utility>
#include <vector>

#include "fft/grid.h"

namespace twiddle {

// Grids of the sizes {height, width} that suit a problem, whole planes and tiles: the few that are estimated to be the
// fastest, best first.
std::vector<FrequencyGrid> fbfft_grids(const ConvProblem& problem, const std::vector<std::pair<int, int>>& sizes);

}  // namespace twiddle
