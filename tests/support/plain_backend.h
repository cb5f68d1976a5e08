#pragma once
#include "fft/spectral_engine.h"

namespace twiddle {

// Spectra by the sum that defines them, for any grid, and products by three loops: what tells the engine's faults from
// a transform's. One transform and one product for each storage, of which it knows interleaved floats and doubles.
SpectralBackend plain_backend(const std::vector<FrequencyGrid>& grids,
                              const std::vector<SpectrumStorage>& storages = {SpectrumStorage::interleaved_doubles});

}  // namespace twiddle
