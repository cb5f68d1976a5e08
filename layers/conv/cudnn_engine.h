#pragma once
#include <memory>
#include <vector>

#include "layers/conv/engines.h"

namespace twiddle {

// "cudnn", the fastest way that cuDNN has, and behind it one engine for each of its ways, taken by name alone:
// "cudnn:fft_tiling", "cudnn:winograd_nonfused", "cudnn:nhwc" ... Empty in a build without cuDNN. The library is loaded
// when an engine is first asked for anything; where it is missing, that throws.
std::vector<std::unique_ptr<ConvEngine>> make_cudnn_engines(Device device, const ConvEngineOptions& options);

}  // namespace twiddle
