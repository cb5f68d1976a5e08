#pragma once
#include <memory>
#include <vector>

#include "framework/convolution.h"

namespace twiddle {

class ChoiceCache;
class Measuring;

// What engines that choose among several ways of their own are held to.
struct ConvEngineOptions {
  std::size_t workspace_limit = std::size_t(4) << 30;
  std::size_t frequency_budget = std::size_t(4) << 30;  // for spectra that are kept from pass to pass
  bool deterministic = false;  // equal inputs give equal bits, from run to run: nothing is chosen by its time
  std::shared_ptr<ChoiceCache> cache = {};    // keeps the ways chosen between runs; null: each run chooses anew
  std::shared_ptr<Measuring> measuring = {};  // for who waits until they are chosen; null: nobody
};

// The engines of a device; their order is the selection rule.
std::vector<std::unique_ptr<ConvEngine>> make_conv_engines(Device device, const ConvEngineOptions& options = {});

// One element of a pass's result (flat index into the written tensor), summed in double from host arrays: what every
// engine is held to.
double conv_reference(const ConvProblem& problem, ConvPass pass, const float* x, const float* w, const float* y,
                      const float* bias, std::int64_t index);

// relative_error (conv_check.h) of what the pass wrote against the reference on `samples` elements spread over it; NaN
// where any element is, sampled or not.
double conv_error(Context& ctx, const ConvProblem& problem, ConvPass pass, const ConvOperands& operands, int samples);

}  // namespace twiddle
