#pragma once
#include "fft/frequency_product.h"
#include "fft/spectral_transform.h"

namespace twiddle {

// A product and its inverse transform at once, so that the product's spectrum is nowhere stored: worth it where k is
// small, since then it is as large as what it is made of, or larger.
class FusedInverse {
 public:
  virtual ~FusedInverse() = default;
  virtual std::string_view name() const = 0;    // beside those of products: "in the inverse"
  virtual SpectrumStorage storage() const = 0;  // of both factors
  virtual bool supports(const FrequencyGemm& gemm, const Planes& planes) const = 0;
  virtual std::size_t scratch_bytes(const Planes& /*planes*/) const { return 0; }
  // `target` as SpectralTransform::inverse() leaves it, after a product of `a` and `b`.
  virtual void run(Context& ctx, const FrequencyGemm& gemm, const void* a, const void* b, const Planes& planes,
                   float* target, const PlaneEpilogue& epilogue, void* scratch) = 0;
};

}  // namespace twiddle
