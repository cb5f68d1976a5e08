#pragma once
#include <cufft.h>

#include <compare>
#include <map>
#include <source_location>

#include "framework/cuda/check.h"
#include "framework/device.h"

namespace twiddle {

void check(cufftResult status, const std::source_location& where = std::source_location::current());

// Planes that one plan transforms: real ones as padded_width() (pad_crop_device.h) says; spectra [plane][bin], which
// may be in place.
struct FourierBatch {
  int height = 0, width = 0;
  std::int64_t count = 0;
  auto operator<=>(const FourierBatch&) const = default;
};

// Memory for a transform to work in.
struct WorkArea {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

// A cache of cuFFT's plans.
class CufftPlans {
 public:
  std::size_t work_bytes(const FourierBatch& batch);  // enough for either direction, by an estimate
  void forward(Stream& stream, const FourierBatch& batch, float* real, cufftComplex* spectra, const WorkArea& work);
  // Overwrites the spectra.
  void inverse(Stream& stream, const FourierBatch& batch, cufftComplex* spectra, float* real, const WorkArea& work);

 private:
  struct Plan {
    Handle<cufftHandle, cufftDestroy> handle;
    std::size_t work_bytes = 0;
    std::int64_t last_use = 0;
    bool captured = false;  // in a CUDA graph, which may replay it: it must be kept
  };
  struct Key {
    FourierBatch batch;
    bool inverse;
    auto operator<=>(const Key&) const = default;
  };
  Plan& plan(const Key& key);
  template <class Execute>
  void run(Stream& stream, const Key& key, const WorkArea& work, const Execute& execute);

  std::map<Key, Plan> plans_;
  std::map<FourierBatch, std::size_t> work_bytes_;
  std::int64_t uses_ = 0;
};

}  // namespace twiddle
