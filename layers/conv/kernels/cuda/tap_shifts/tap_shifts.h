#pragma once
#include <cstddef>

#include "framework/convolution.h"

namespace twiddle {

// Whether the kernels can do a pass on a GPU of compute capability 9.0: kernels of 3x3, strides of 1, no groups.
bool tap_shifts_fit(const ConvProblem& problem, ConvPass pass);

// A pass, forward with bias and ReLU, in the class of problem.precision; and the scratch memory that it takes.
void run_tap_shifts(Stream& stream, const ConvProblem& problem, ConvPass pass, ConvOperands& operands);
std::size_t tap_shifts_scratch(const Device& gpu, const ConvProblem& problem, ConvPass pass);

}  // namespace twiddle
