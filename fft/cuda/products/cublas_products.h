#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of interleaved spectra, by cuBLAS.
std::vector<std::unique_ptr<FrequencyProduct>> make_cublas_products();
// Products of real spectra.
std::vector<std::unique_ptr<FrequencyProduct>> make_cublas_real_products();

}  // namespace twiddle
