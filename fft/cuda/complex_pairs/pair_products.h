#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"
#include "framework/convolution.h"

namespace twiddle {

// Products of interleaved spectra on the tensor cores of the calling thread's GPU, the default first: "pairs" by wgmma
// (compute capability 9.0) and "pairs_mma" by mma.sync (8.0 or higher). "halves" and "halves_mma" use a single fp16
// value per float and are within the error limit of tf32.
std::vector<std::unique_ptr<FrequencyProduct>> make_pair_products();

// Whether that GPU has one, and it takes products of a problem's size.
bool can_multiply_pairs(const ConvProblem& problem);

}  // namespace twiddle
