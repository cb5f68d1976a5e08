#pragma once
#include <memory>
#include <vector>

#include "fft/cuda/products/blas.h"
#include "fft/frequency_product.h"

namespace twiddle {

// Products of interleaved spectra, by cuBLAS.
std::vector<std::unique_ptr<FrequencyProduct>> make_cublas_products(const std::shared_ptr<Blas>& blas);
// The product of real spectra.
std::unique_ptr<FrequencyProduct> make_cublas_real_product(const std::shared_ptr<Blas>& blas);

}  // namespace twiddle
