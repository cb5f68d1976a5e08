#pragma once
#include "fft/spectral_engine.h"

namespace twiddle {

// Spectra by the sum that defines them, for any grid, and products by three loops: distinguishes errors of the engine
// from those of a transform. One transform and one product for each storage: interleaved floats and doubles.
SpectralBackend plain_backend(const std::vector<FrequencyGrid>& grids,
                              const std::vector<SpectrumStorage>& storages = {SpectrumStorage::interleaved_doubles});

}  // namespace twiddle
