#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// The unrolled baseline: each image's patches as the columns of a matrix (im2col), and one matrix product per image and
// group. Supports every valid problem, on either device.
std::unique_ptr<ConvEngine> make_gemm_engine(Device device = {});

}  // namespace twiddle
