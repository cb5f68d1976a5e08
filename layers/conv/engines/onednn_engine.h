#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// oneDNN's convolutions: "direct" and "winograd"; null in a build without oneDNN.
std::unique_ptr<ConvEngine> make_onednn_engine();

}  // namespace twiddle
