#include "fft/cuda/products/real_products.h"

#include "fft/cuda/products/complex_products.h"
#include "fft/cuda/products/cublas_products.h"

namespace twiddle {

std::vector<std::unique_ptr<FrequencyProduct>> make_real_products() {
  std::vector<std::unique_ptr<FrequencyProduct>> products;
  products.push_back(make_real_tiles());
  products.push_back(make_cublas_real_product(std::make_shared<Blas>()));
  return products;
}

}  // namespace twiddle
