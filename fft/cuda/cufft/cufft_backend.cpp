#include "fft/cuda/complex_pairs/pair_products.h"
#include "fft/cuda/cufft/cufft_transform.h"
#include "fft/cuda/products/blas.h"
#include "fft/cuda/products/channel_product.h"
#include "fft/cuda/products/cublas_products.h"
#include "fft/cuda/products/tile_products.h"
#include "fft/spectral_engine.h"
#include "framework/error.h"

namespace twiddle {

namespace {

std::string library_versions() {
  int version = 0;
  check(cufftGetVersion(&version));  // 12004 is 12.0.4
  return join("cuFFT ", version / 1000, ".", version % 1000 / 100, ".", version % 100, ", ", blas_version());
}

}  // namespace

SpectralBackend cufft() {
  SpectralBackend backend{"cufft", library_versions(), {}, make_pair_products()};
  for (auto& product : make_cublas_products()) backend.products.push_back(std::move(product));
  backend.products.push_back(make_channel_product());
  backend.products.push_back(std::move(make_tile_products().front()));  // for more groups than cuBLAS takes
  backend.transforms.push_back(std::make_unique<CufftTransform>());
  return backend;
}

}  // namespace twiddle
