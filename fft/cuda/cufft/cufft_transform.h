#pragma once
#include "fft/cuda/cufft/cufft_plans.h"
#include "fft/spectral_transform.h"

namespace twiddle {

// Spectra by cuFFT, in the steps of Table 1 in Vasilache et al., Fast Convolutional Nets With fbfft, 2015: planes are
// padded with zeros, transformed, and transposed from [plane][bin] to [bin][plane].
class CufftTransform final : public SpectralTransform {
 public:
  std::string_view name() const override { return "cufft"; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved; }
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::size_t spectrum_bytes(const Planes& planes) const override;
  std::size_t scratch_bytes(const Planes& planes) const override;
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override;
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override;

 private:
  WorkArea work_area(const Planes& planes, void* scratch) const;

  mutable CufftPlans plans_;  // a cache
};

}  // namespace twiddle
