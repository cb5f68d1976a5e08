#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// The engine "implicit_gemm": layers with few channels, such as a network's first, as matrix products by a GPU's tensor
// cores, whose one factor is gathered from x while it is multiplied; backward_input where filters are few and the
// stride is 1. Null where the device has no tensor cores.
std::unique_ptr<ConvEngine> make_implicit_gemm_engine(Device device);

}  // namespace twiddle
