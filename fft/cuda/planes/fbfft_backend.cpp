#include "fft/cuda/complex_pairs/pair_products.h"
#include "fft/cuda/planes/fbfft_fused_inverse.h"
#include "fft/cuda/planes/fbfft_halves_transform.h"
#include "fft/cuda/planes/fbfft_transform.h"
#include "fft/cuda/products/blas.h"
#include "fft/cuda/products/channel_product.h"
#include "fft/cuda/products/cublas_products.h"
#include "fft/cuda/products/tile_products.h"
#include "fft/cuda/stored_pairs/stored_products.h"
#include "fft/spectral_engine.h"

namespace twiddle {

SpectralBackend fbfft() {
  SpectralBackend backend{"fbfft", blas_version(), {}, make_pair_products()};
  for (auto& product : make_cublas_products()) backend.products.push_back(std::move(product));
  for (auto& product : make_tile_products()) backend.products.push_back(std::move(product));
  backend.products.push_back(make_channel_product());
  for (auto& product : make_stored_products()) backend.products.push_back(std::move(product));
  backend.transforms.push_back(std::make_unique<FbfftTransform>());
  for (const int halves_a_float : {2, 1})
    backend.transforms.push_back(std::make_unique<FbfftHalvesTransform>(halves_a_float));
  backend.fused = std::make_unique<FbfftFusedInverse>();
  return backend;
}

}  // namespace twiddle
