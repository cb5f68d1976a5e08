#pragma once
#include <cstddef>

#include "fft/pair_product.h"
#include "framework/convolution.h"

namespace twiddle {

// Returns whether the kernels support a pass on a GPU with fp16 tensor cores: no groups, few channels (backward_input:
// filters, and strides of 1), and a tile's operands fit into shared memory.
bool implicit_gemm_fits(const Device& gpu, const ConvProblem& problem, ConvPass pass);

// A pass with bias and ReLU, or with mask and the bias's gradient, in the class of problem.precision; and the scratch
// memory that it takes.
void run_implicit_gemm(Stream& stream, TensorCores cores, const ConvProblem& problem, ConvPass pass,
                       ConvOperands& operands);
std::size_t implicit_gemm_scratch(const Device& gpu, const ConvProblem& problem, ConvPass pass);

}  // namespace twiddle
