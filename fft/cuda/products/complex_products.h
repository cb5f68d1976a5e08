#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of interleaved spectra, by our own kernels: they win over cuBLAS where matrices are small, have few
// columns, or have no size that it is tuned for.
std::vector<std::unique_ptr<FrequencyProduct>> make_complex_products();

}  // namespace twiddle
