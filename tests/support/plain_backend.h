#pragma once
#include "fft/spectral_engine.h"

namespace twiddle {

// Spectra by the sum that defines them, for any grid, and products by three loops: what tells the engine's faults from
// a transform's. Spectra are stored as [bin][row][column], in complex doubles.
SpectralBackend plain_backend(std::vector<FrequencyGrid> grids);

}  // namespace twiddle
