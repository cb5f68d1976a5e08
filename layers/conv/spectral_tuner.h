#pragma once
#include <memory>

#include "fft/spectral_engine.h"

namespace twiddle {

class ChoiceCache;

// Chooses a spectral engine's strategies by measurement: a grid and a transform for training's passes together, since
// they share spectra, and then each pass's product. What misses the precision is not taken. `cache` keeps the choices
// between runs; null: each run measures.
SpectralEngine::Tuner spectral_tuner(std::shared_ptr<ChoiceCache> cache, std::size_t workspace_limit);

}  // namespace twiddle
