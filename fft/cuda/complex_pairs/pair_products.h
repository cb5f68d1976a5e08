#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of interleaved spectra on the tensor cores of the calling thread's GPU, within fp32's class: "pairs", the
// fastest that it has, and "pairs_mma", where that is another one. None below sm_80.
std::vector<std::unique_ptr<FrequencyProduct>> make_pair_products();

}  // namespace twiddle
