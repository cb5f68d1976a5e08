#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// The engine "pairs": 1x1 convolutions as matrix products by a GPU's tensor cores, in the fp32 class. Null where the
// device has none.
std::unique_ptr<ConvEngine> make_pairs_engine(Device device);

}  // namespace twiddle
