#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of real spectra on that GPU, by tensor cores, by our own kernel for others and by cuBLAS.
std::vector<std::unique_ptr<FrequencyProduct>> make_real_products(Device device);

}  // namespace twiddle
