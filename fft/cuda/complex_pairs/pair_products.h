#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"
#include "framework/convolution.h"

namespace twiddle {

// Products of interleaved spectra on the tensor cores of the calling thread's GPU, the usual ones first: "pairs" by
// wgmma, on GPUs of compute capability 9.0, and "pairs_mma" by mma.sync, from 8.0 on; and with one half a float, in
// TF32's class, "halves" and "halves_mma".
std::vector<std::unique_ptr<FrequencyProduct>> make_pair_products();

// Whether that GPU has one, and it takes products of a problem's size.
bool can_multiply_pairs(const ConvProblem& problem);

}  // namespace twiddle
