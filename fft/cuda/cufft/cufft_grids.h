#pragma once
#include <vector>

#include "fft/grid.h"

namespace twiddle {

// Sizes from `least` to the next power of two that have no prime factor above 7, for which cuFFT has kernels.
std::vector<int> smooth_sizes(int least);

// One tile for the whole plane, of such heights and widths; the likely fastest first, and with the two powers of two.
std::vector<FrequencyGrid> cufft_grids(const ConvProblem& problem);

}  // namespace twiddle
