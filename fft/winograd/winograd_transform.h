#pragma once
#include "fft/spectral_transform.h"

namespace twiddle {

// Winograd's F(outputs x outputs, 3x3) as a transform of the spectral engine: its "spectra" have (outputs + 2)^2 real
// bins a tile. Tiles of x overlap by two elements, tiles of y do not. Any device.
template <int outputs>
class WinogradTransform final : public SpectralTransform {
 public:
  std::string_view name() const override { return outputs == 2 ? "F(2x2)" : "F(4x4)"; }
  SpectrumStorage storage() const override { return SpectrumStorage::real; }
  // Kernels of 3x3 alone, and of these the one grid there is.
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::int64_t bins(const FrequencyGrid& grid) const override { return std::int64_t(grid.height) * grid.width; }
  std::size_t spectrum_bytes(const Planes& planes) const override;
  std::size_t scratch_bytes(const Planes& /*planes*/) const override { return 0; }
  bool masks_and_sums() const override { return true; }
  void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum, void* scratch) override;
  void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target, const PlaneEpilogue& epilogue,
               void* scratch) override;
  void sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add, float* sums) override;
};

}  // namespace twiddle
