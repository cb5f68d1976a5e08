#pragma once
#include "fft/spectral_engine.h"

namespace twiddle {

// Returns a plan on any grid with the backend's first transform and the product of that name; without a name the fused
// inverse multiplies.
std::shared_ptr<const ConvPlan> spectral_plan(const std::shared_ptr<const SpectralBackend>& backend,
                                              const std::shared_ptr<FrequencyBuffers>& buffers,
                                              const ConvProblem& problem, ConvPass pass, const FrequencyGrid& grid,
                                              const std::string& product = {});

}  // namespace twiddle
