#include "fft/cuda/products/real_products.h"

#include "fft/cuda/products/cublas_products.h"
#include "fft/cuda/products/tile_products.h"

namespace twiddle {

std::vector<std::unique_ptr<FrequencyProduct>> make_real_products() {
  auto products = make_cublas_real_products(std::make_shared<Blas>());
  products.insert(products.begin(), make_real_tile_product());
  return products;
}

}  // namespace twiddle
