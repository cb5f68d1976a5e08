#pragma once
#include "framework/convolution.h"

namespace twiddle {

// Whether the kernels can do a depthwise problem (groups = channels = filters): up to 11 x 11 taps, undilated, and
// equal strides of 1 or 2; planes of one row with up to 2,040 taps where the stride is 1.
bool depthwise_fits_gpu(const ConvProblem& problem);

// A pass with bias, ReLU and mask on a GPU; the scratch memory that it takes; and whether its weight gradient sums the
// bias's, too.
void depthwise_on_gpu(Stream& stream, const ConvProblem& problem, ConvPass pass, ConvOperands& operands);
std::size_t depthwise_scratch_on_gpu(const ConvProblem& problem, ConvPass pass);
bool depthwise_sums_bias_on_gpu(const ConvProblem& problem);

}  // namespace twiddle
