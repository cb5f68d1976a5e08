#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// Depthwise convolutions (as many groups as channels and filters) of stride 1 on a GPU by Fourier transforms of whole
// planes, each of which goes from x to y in one kernel; its plans are the sizes of transforms. Null in a build without
// CUDA.
std::unique_ptr<ConvEngine> make_depthwise_fft_engine(Device device);

}  // namespace twiddle
