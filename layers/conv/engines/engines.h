#pragma once
#include <memory>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

// Beside the spectra, phases of strided convolutions are kept from pass to pass: this part of the spectra's budget,
// each of two or three engines.
constexpr std::size_t phases_share = 8;

struct ConvEngineOptions {
  std::size_t workspace_limit = std::size_t(4) << 30;   // a batch that needs more goes in slices where an engine can
  std::size_t frequency_budget = std::size_t(4) << 30;  // for spectra that are kept from pass to pass
};

// The engines of a device; their order is the selection rule.
std::vector<std::unique_ptr<ConvEngine>> make_conv_engines(Device device, const ConvEngineOptions& options = {});

// One element of a pass's result (flat index into the written tensor), summed in double from host arrays: what every
// engine is held to.
double conv_reference(const ConvProblem& problem, ConvPass pass, const float* x, const float* w, const float* y,
                      const float* bias, std::int64_t index);

}  // namespace twiddle
