#include "fft/cuda/cufft/pad_and_crop.h"
#include "fft/cuda/products/real_products.h"
#include "fft/cuda/winograd/cuda_winograd.h"
#include "fft/native_product.h"
#include "fft/pair_product.h"
#include "fft/spectral_engine.h"
#include "framework/error.h"

namespace twiddle {

SpectralBackend cufft() {
  return {"cufft", "", {}, {}};
}

SpectralBackend fbfft() {
  return {"fbfft", "", {}, {}};
}

std::unique_ptr<ConvEngine> make_depthwise_fft_engine(Device, std::shared_ptr<FrequencyBuffers>, std::size_t) {
  return nullptr;
}

std::vector<std::unique_ptr<FrequencyProduct>> make_real_products(Device) {
  return {};
}

std::vector<std::unique_ptr<SpectralTransform>> make_cuda_winograd() {
  return {};
}

std::vector<TensorCores> tensor_cores(const Device&) {
  return {};
}

std::size_t scratch_of_pair_product(const Device&, TensorCores, const PairProduct&) {
  return 0;
}

bool can_multiply_native(const Device&, const NativeProduct&) {
  return false;
}

std::size_t scratch_bytes(const Device&, const NativeProduct&) {
  return 0;
}

void multiply_native(Stream&, const NativeProduct&, void*) {
  throw Error(ErrorKind::device, "products by tensor cores run on a GPU, and this build has no CUDA side");
}

void run_pair_product(Stream&, TensorCores, const PairProduct&) {
  throw Error(ErrorKind::device, "products by tensor cores run on a GPU, and this build has no CUDA side");
}

void pad_planes(Stream&, const Planes&, std::int64_t, std::int64_t, const float*, float*) {
  throw Error(ErrorKind::device, "a build without CUDA pads no planes");
}

void crop_planes(Stream&, const Planes&, std::int64_t, std::int64_t, const float*, float*, const PlaneEpilogue&) {
  throw Error(ErrorKind::device, "a build without CUDA crops no planes");
}

}  // namespace twiddle
