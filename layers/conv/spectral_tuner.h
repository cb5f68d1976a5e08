#pragma once
#include <memory>

#include "fft/spectral_engine.h"

namespace twiddle {

class ChoiceCache;
class Measuring;

// Chooses a spectral engine's strategies by measurement: a grid and a transform for training's passes together, since
// they share spectra, and then each pass's product. What misses the precision is not taken. `cache` keeps the choices
// between runs, unless measured again they come out otherwise; null: each run measures.
SpectralEngine::Tuner spectral_tuner(std::shared_ptr<ChoiceCache> cache, std::size_t workspace_limit,
                                     std::shared_ptr<Measuring> measuring = nullptr);

}  // namespace twiddle
