#pragma once
#include "fft/cuda/planes/fbfft_kernels.h"
#include "fft/spectral_transform.h"

namespace twiddle {

// Spectra of packed bins (small_fft::PlaneSize) by our own kernels. Each transform is one launch, or one a colour where
// tiles are accumulated, and needs no scratch memory.
class FbfftTransform final : public SpectralTransform {
 public:
  FbfftTransform();

  std::string_view name() const override { return "fbfft"; }
  SpectrumStorage storage() const override { return SpectrumStorage::interleaved; }
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::int64_t bins(const FrequencyGrid& grid) const override;
  std::size_t spectrum_bytes(const Planes& planes) const override;
  std::size_t scratch_bytes(const Planes&) const override { return 0; }
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override;
  // Whether it can write the storages of stored_spectrum.h; if so, without these powers of two.
  bool stores_halves(const FrequencyGrid& grid) const { return kernels(grid).stores_halves; }
  void forward_as_halves(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum,
                         int halves_a_float, const int* of_columns, const int* of_rows);
  bool masks_and_sums() const override { return true; }
  void sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add, float* sums) override;
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override;

 private:
  const small_fft::PlaneKernels& kernels(const FrequencyGrid& grid) const;
  std::vector<small_fft::PlaneKernels> all_;
};

}  // namespace twiddle
