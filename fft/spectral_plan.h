#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fft/frequency_buffers.h"
#include "fft/frequency_product.h"
#include "fft/fused_inverse.h"
#include "fft/spectral_transform.h"
#include "framework/convolution.h"

namespace twiddle {

// All that makes and multiplies spectra of one kind. Products, and the fused inverse, serve the transforms of
// their storage.
struct SpectralBackend {
  std::string engine;   // its name: "fft", "cufft"
  std::string library;  // "cuFFT 12.0": whose speed is not this program's own; empty: its own
  std::vector<std::unique_ptr<SpectralTransform>> transforms;  // the usual one first; none: cannot be had here
  std::vector<std::unique_ptr<FrequencyProduct>> products;     // the usual one of each storage first
  std::unique_ptr<FusedInverse> fused = nullptr;               // of x and y; null: none
  bool (*pays)(const ConvProblem&) = nullptr;                  // where the rule takes it; null: wherever it can
};

// How a spectral plan goes about it: which transform on which grid, and what multiplies.
struct SpectralParts {
  SpectralTransform* transform = nullptr;
  FrequencyGrid grid;
  FrequencyProduct* product = nullptr;  // what multiplies ...
  FusedInverse* fused = nullptr;        // ... or, in its place, does that in the inverse
};

// What is done to some images: C = op(A) op(B), a bin and a group at a time. Where the inverse is fused, the product's
// spectrum takes no bytes.
struct SpectralSlice {
  ConvOperand a_is, b_is, c_is;
  Planes a = {}, b = {}, c = {};
  FrequencyGemm gemm = {};
  std::size_t a_bytes = 0, b_bytes = 0, c_bytes = 0, scratch_bytes = 0;
  std::size_t bytes() const { return a_bytes + b_bytes + c_bytes + scratch_bytes; }
};
SpectralSlice slice_of(const ConvProblem& problem, ConvPass pass, const SpectralParts& parts, int images);

// How many images go at once where spectra and scratch may take `limit` bytes; 0: not even one fits.
int images_within(std::size_t limit, const ConvProblem& problem, ConvPass pass, const SpectralParts& parts);
// Bytes of spectra and scratch that so many images at once take.
std::size_t scratch_bytes(const ConvProblem& problem, ConvPass pass, const SpectralParts& parts, int images);

// A convolution as a product of spectra: two operands are transformed, multiplied a bin at a time and transformed back;
// which is which depends on the pass. A batch whose spectra exceed the limit goes in slices.
class SpectralPlan final : public ConvPlan {
 public:
  SpectralPlan(Facts facts, std::shared_ptr<const SpectralBackend> backend, std::shared_ptr<FrequencyBuffers> buffers,
               const ConvProblem& problem, ConvPass pass, const SpectralParts& parts, int images_at_once);
  void run(Context& ctx, ConvOperands& operands) const override;
  const SpectralParts& parts() const { return parts_; }
  int images_at_once() const { return images_; }

 private:
  std::shared_ptr<void> spectrum(Context& ctx, ConvOperands& operands, ConvOperand operand, const Planes& planes,
                                 void* scratch) const;

  std::shared_ptr<const SpectralBackend> backend_;  // owns what parts_ points to
  std::shared_ptr<FrequencyBuffers> buffers_;
  ConvProblem problem_;
  ConvPass pass_;
  SpectralParts parts_;
  int images_;
  SpectralSlice whole_, last_;  // a slice of images_, and what is left of the batch behind the last of these
  std::string kind_of_spectrum_;
};

}  // namespace twiddle
