#pragma once
#include <memory>
#include <vector>

#include "fft/frequency_product.h"

namespace twiddle {

// Products of interleaved spectra by our own kernels. They are faster than cuBLAS where matrices are small, have few
// columns, or have a size that it is not tuned for.
std::vector<std::unique_ptr<FrequencyProduct>> make_tile_products();

// The same for spectra of real numbers.
std::unique_ptr<FrequencyProduct> make_real_tile_product();

}  // namespace twiddle
