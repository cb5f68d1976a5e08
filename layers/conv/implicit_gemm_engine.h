#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// The engine "implicit_gemm": forward and backward_weight of layers with few channels, such as a network's first, as
// matrix products by a GPU's tensor cores, whose one factor is gathered from x while it is multiplied. Null where the
// device has none.
std::unique_ptr<ConvEngine> make_implicit_gemm_engine(Device device);

}  // namespace twiddle
