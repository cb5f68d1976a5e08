#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"
#include "framework/convolution.h"

namespace twiddle {

// The products "stored_pairs" of spectra in the storage half_pairs, within fp32's class, and "stored_halves" of those
// in the storage halves, within TF32's, where the calling thread's GPU has them: of compute capability 9.0.
std::vector<std::unique_ptr<FrequencyProduct>> make_stored_products();

// Whether that GPU has them, and they take products of a problem's size.
bool can_multiply_stored(const ConvProblem& problem);

}  // namespace twiddle
