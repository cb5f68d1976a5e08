#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"
#include "framework/convolution.h"

namespace twiddle {

// Products for GPUs of compute capability 9.0; none if the calling thread's GPU has another one. "stored_pairs"
// multiplies the storage half_pairs within the error limit of fp32, "stored_halves" the storage halves within that of
// tf32.
std::vector<std::unique_ptr<FrequencyProduct>> make_stored_products();

// Whether that GPU has them, and they take products of a problem's size.
bool can_multiply_stored(const ConvProblem& problem);

}  // namespace twiddle
