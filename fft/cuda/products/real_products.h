#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of real spectra on a GPU, by our own kernel and by cuBLAS.
std::vector<std::unique_ptr<FrequencyProduct>> make_real_products();

}  // namespace twiddle
