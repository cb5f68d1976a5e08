#pragma once
#include <memory>
#include <vector>

#include "fft/cuda/products/blas.h"
#include "fft/frequency_product.h"

namespace twiddle {

// Products of interleaved spectra, by cuBLAS.
std::vector<std::unique_ptr<FrequencyProduct>> make_cublas_products(const std::shared_ptr<Blas>& blas);
// Products of real spectra.
std::vector<std::unique_ptr<FrequencyProduct>> make_cublas_real_products(const std::shared_ptr<Blas>& blas);

}  // namespace twiddle
