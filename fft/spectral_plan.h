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

// Everything that computes and multiplies spectra of one kind. Products and the fused inverse work with the transforms
// of the same storage.
struct SpectralBackend {
  std::string engine;   // its name: "fft", "cufft"
  std::string library;  // "cuFFT 12.0": the library that determines the speed; empty: own kernels
  std::vector<std::unique_ptr<SpectralTransform>> transforms;  // the default first; empty: not available
  std::vector<std::unique_ptr<FrequencyProduct>> products;     // the default of each storage first
  std::unique_ptr<FusedInverse> fused = nullptr;               // of x and y; null: none
  bool (*pays)(const ConvProblem&) = nullptr;                  // whether the heuristic selects it; null: if supported
};

// The parts of a spectral plan: a transform on a grid, and a product.
struct SpectralParts {
  SpectralTransform* transform = nullptr;
  FrequencyGrid grid;
  FrequencyProduct* product = nullptr;  // what multiplies, or ...
  FusedInverse* fused = nullptr;        // ... multiplies within the inverse transform instead
};

// The work for some images: C = op(A) op(B) per bin and group. If the inverse is fused, the product's spectrum takes no
// memory.
struct SpectralSlice {
  ConvOperand a_is, b_is, c_is;
  Planes a = {}, b = {}, c = {};
  FrequencyGemm gemm = {};
  std::size_t a_bytes = 0, b_bytes = 0, c_bytes = 0, scratch_bytes = 0;
  std::size_t bytes() const { return a_bytes + b_bytes + c_bytes + scratch_bytes; }
};
SpectralSlice slice_of(const ConvProblem& problem, ConvPass pass, const SpectralParts& parts, int images);

// Returns the most images per slice whose spectra and scratch fit `limit` bytes; 0: not even one fits.
int images_within(std::size_t limit, const ConvProblem& problem, ConvPass pass, const SpectralParts& parts);
// Returns the bytes of spectra and scratch for slices of `images` images.
std::size_t scratch_bytes(const ConvProblem& problem, ConvPass pass, const SpectralParts& parts, int images);

// A convolution as a product of spectra: two operands are transformed, multiplied bin by bin and transformed back; the
// pass determines which operands. A batch whose spectra exceed the limit is processed in slices.
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
  SpectralSlice whole_, last_;  // a slice of images_, and the rest of the batch after the last of these
  std::string kind_of_spectrum_;
};

}  // namespace twiddle
