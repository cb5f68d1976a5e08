#pragma once
#include "fft/cpu/kernels.h"
#include "framework/convolution.h"

namespace twiddle {

// A pass of a depthwise convolution (groups = channels = filters, any stride and dilation) on the CPU, with bias, ReLU
// and mask, by the loops of an instruction set; and the scratch memory that it takes.
void depthwise_on_cpu(Stream& stream, const ConvProblem& problem, ConvPass pass, ConvOperands& operands,
                      InstructionSet set = best_instruction_set());
std::size_t depthwise_scratch_on_cpu(const ConvProblem& problem, ConvPass pass);

}  // namespace twiddle
