#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// Depthwise convolutions (groups = channels = filters) summed tap by tap, for small kernels and small planes: each
// plane is read once, and bias, ReLU and the backward pass of both are done in the same pass. On the CPU for any
// kernel, stride and dilation; on a GPU undilated, for kernels of up to 11 x 11 with strides of 1 or 2, and with stride
// 1 of any size on planes of up to 16 x 16 and of up to 2,040 taps on planes of one row.
//
// `pays`: where the rule takes it; null: wherever it can.
std::unique_ptr<ConvEngine> make_depthwise_engine(Device device, bool (*pays)(const ConvProblem&) = nullptr);

}  // namespace twiddle
