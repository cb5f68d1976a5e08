#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// oneDNN's convolutions, as "onednn" and "onednn:winograd"; null in a build without oneDNN.
std::unique_ptr<ConvEngine> make_onednn_engine();
std::unique_ptr<ConvEngine> make_onednn_winograd_engine();

}  // namespace twiddle
