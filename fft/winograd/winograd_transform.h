#pragma once
#include "fft/spectral_transform.h"

namespace twiddle {

// Returns which operand the planes are, by window size: a tile's points for x, its outputs for y, the kernel for w.
ConvOperand operand_of(const Planes& planes);

// Winograd's F(outputs x outputs, 3x3) as a transform of the spectral engine, on both devices: its "spectra" have
// (outputs + 2)^2 real bins per tile. Tiles of x overlap by two elements, tiles of y do not.
template <int outputs>
class WinogradTransform : public SpectralTransform {
 public:
  std::string_view name() const override { return outputs == 2 ? "F(2x2)" : "F(4x4)"; }
  SpectrumStorage storage() const override { return SpectrumStorage::real; }
  // Only for 3x3 kernels, with a single grid.
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::int64_t bins(const FrequencyGrid& grid) const override { return std::int64_t(grid.height) * grid.width; }
  std::size_t spectrum_bytes(const Planes& planes) const override;
  std::size_t scratch_bytes(const Planes& /*planes*/) const override { return 0; }
  // F(4x4) multiplies the error of the product by 4.8: TF32's 3e-4 becomes 1.5e-3, above the error limit of 1e-3.
  bool takes_tf32_products() const override { return outputs == 2; }
  bool masks_and_sums() const override { return true; }
};

}  // namespace twiddle
