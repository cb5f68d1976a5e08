#pragma once
#include "fft/cuda/planes/fbfft_transform.h"
#include "fft/cuda/stored_pairs/stored_spectrum.h"

namespace twiddle {

// The same transforms, but what goes forward is stored as halves, for products that need not split it: two a float, or
// one, in TF32's class. Products of two are floats. Before each a look at all planes finds the exponents which their
// numbers shall lack.
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
