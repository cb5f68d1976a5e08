#include "fft/cuda/products/real_products.h"

#include "fft/cuda/pair_products/real_pairs.h"
#include "fft/cuda/products/cublas_products.h"
#include "fft/cuda/products/tile_products.h"

namespace twiddle {

std::vector<std::unique_ptr<FrequencyProduct>> make_real_products(Device device) {
  std::vector<std::unique_ptr<FrequencyProduct>> products = make_real_pair_products(device);
  products.push_back(make_real_tile_product());
  for (auto& product : make_cublas_real_products()) products.push_back(std::move(product));
  return products;
}

}  // namespace twiddle
