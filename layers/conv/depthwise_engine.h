#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// Depthwise convolutions (groups = channels = filters) summed tap by tap, at the speed of memory for small kernels:
// each plane is read once, and bias, ReLU and the way back through both are done in the same pass. On the CPU for any
// kernel, stride and dilation; on a GPU for kernels of up to 11 x 11, undilated, with strides of 1 or 2.
std::unique_ptr<ConvEngine> make_depthwise_engine(Device device);

}  // namespace twiddle
