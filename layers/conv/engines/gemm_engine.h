#pragma once
#include <memory>

#include "framework/convolution.h"

namespace twiddle {

// The unrolled baseline: each image's patches as the columns of a matrix (im2col), and one matrix product per image and
// group. Supports every valid problem, on either device.
std::unique_ptr<ConvEngine> make_gemm_engine(Device device = {});

// Whether a CPU unrolls y instead of x, which has fewer planes: then a layer of few filters is as fast as its rotated
// one, of few channels.
bool unrolls_output(const ConvProblem& problem);

}  // namespace twiddle
