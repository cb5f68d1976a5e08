#pragma once
#include "fft/cuda/planes/fbfft_transform.h"
#include "fft/cuda/stored_pairs/stored_spectrum.h"

namespace twiddle {

// The same transforms, but forward results are stored as fp16, for products that need not split them: two values per
// float, or one, within the error limit of tf32. Products of two such spectra are floats. Before each transform, a pass
// over all planes computes the exponents to remove from its numbers.
class FbfftHalvesTransform final : public SpectralTransform {
 public:
  explicit FbfftHalvesTransform(int halves_a_float) : halves_a_float_(halves_a_float) {}
  std::string_view name() const override { return floats_.name(); }
  SpectrumStorage storage() const override {
    return halves_a_float_ == 2 ? SpectrumStorage::half_pairs : SpectrumStorage::halves;
  }
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::int64_t bins(const FrequencyGrid& grid) const override { return floats_.bins(grid); }
  std::size_t spectrum_bytes(const Planes& planes) const override { return stored(planes).bytes(); }
  std::size_t product_bytes(const Planes& planes) const override { return floats_.spectrum_bytes(planes); }
  std::size_t scratch_bytes(const Planes& planes) const override;
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override;
  bool masks_and_sums() const override { return true; }
  void sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add, float* sums) override;
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override {
    floats_.inverse(ctx, planes, spectrum, target, epilogue, scratch);
  }

 private:
  stored_pairs::StoredSpectrum stored(const Planes& planes) const {
    return {halves_a_float_, bins(planes.grid), planes.matrix_rows(), planes.columns};
  }

  FbfftTransform floats_;
  int halves_a_float_;
};

}  // namespace twiddle
