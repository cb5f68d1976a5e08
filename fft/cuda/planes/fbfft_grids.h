#pragma once
#include <utility>
#include <vector>

#include "fft/grid.h"

namespace twiddle {

// Whole planes and tiles of the sizes {height, width} that serve a problem: those that are estimated to take the least
// time, the likely best first.
std::vector<FrequencyGrid> fbfft_grids(const ConvProblem& problem, const std::vector<std::pair<int, int>>& sizes);

}  // namespace twiddle
