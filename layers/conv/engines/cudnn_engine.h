#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// "cudnn": what cuDNN's heuristics name, in their order, and its older algorithms behind. Null in a build without
// cuDNN. The library is loaded when the engine is first asked for anything; where it is missing, that throws.
std::unique_ptr<ConvEngine> make_cudnn_engine(Device device);

}  // namespace twiddle
