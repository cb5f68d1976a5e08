#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// Seven loops with sums in double, on the CPU: slow, and right. Supports every valid problem.
std::unique_ptr<ConvEngine> make_direct_engine();

}  // namespace twiddle
