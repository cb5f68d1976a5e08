#include "fft/cuda/complex_pairs/pair_products.h"
#include "fft/cuda/cufft/cufft_transform.h"
#include "fft/cuda/cufft/transpose.h"
#include "fft/cuda/products/blas.h"
#include "fft/cuda/products/channel_product.h"
#include "fft/cuda/products/cublas_products.h"
#include "fft/cuda/products/tile_products.h"
#include "fft/spectral_engine.h"
#include "framework/error.h"

namespace twiddle {

namespace {

// A transpose by cuBLAS, as in the paper. Its matrices are column-major (see products/cublas_products.cu).
struct Geam {
  std::shared_ptr<Blas> blas;
  void operator()(Stream& stream, std::int64_t rows, std::int64_t columns, const float2* from, std::int64_t from_pitch,
                  float2* to, std::int64_t to_pitch) const {
    const float2 one{1, 0}, zero{0, 0};
    check(cublasCgeam_64(blas->on(stream), CUBLAS_OP_T, CUBLAS_OP_T, rows, columns, &one, from, from_pitch, &zero, from,
                         from_pitch, to, to_pitch));
  }
};

std::string library_versions() {
  int version = 0;
  check(cufftGetVersion(&version));  // 12004 is 12.0.4
  return join("cuFFT ", version / 1000, ".", version % 1000 / 100, ".", version % 100, ", ", blas_version());
}

}  // namespace

SpectralBackend cufft() {
  const auto plans = std::make_shared<CufftPlans>();
  const auto blas = std::make_shared<Blas>();
  SpectralBackend backend{"cufft", library_versions(), {}, make_pair_products()};
  for (auto& product : make_cublas_products(blas)) backend.products.push_back(std::move(product));
  backend.products.push_back(make_channel_product());
  backend.products.push_back(std::move(make_tile_products().front()));  // for more groups than cuBLAS takes
  auto& transforms = backend.transforms;
  transforms.push_back(std::make_unique<TransposingCufftTransform>("transpose", plans, transpose_complex));
  transforms.push_back(std::make_unique<TransposingCufftTransform>("geam", plans, Geam{blas}));
  transforms.push_back(std::make_unique<StridedCufftTransform>(plans));
  return backend;
}

}  // namespace twiddle
