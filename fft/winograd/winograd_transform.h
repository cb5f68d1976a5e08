#pragma once
#include "fft/spectral_transform.h"

namespace twiddle {

// Which operand these planes are, by the size of a window: x's has a tile's points, y's its outputs, w's is the kernel.
ConvOperand operand_of(const Planes& planes);

// What Winograd's F(outputs x outputs, 3x3), as a transform of the spectral engine, is on every device: its "spectra"
// have (outputs + 2)^2 real bins a tile. Tiles of x overlap by two elements, tiles of y do not.
template <int outputs>
class WinogradTransform : public SpectralTransform {
 public:
  std::string_view name() const override { return outputs == 2 ? "F(2x2)" : "F(4x4)"; }
  SpectrumStorage storage() const override { return SpectrumStorage::real; }
  // Kernels of 3x3 alone, and of these the one grid there is.
  std::vector<FrequencyGrid> grids(const ConvProblem& problem) const override;
  std::int64_t bins(const FrequencyGrid& grid) const override { return std::int64_t(grid.height) * grid.width; }
  std::size_t spectrum_bytes(const Planes& planes) const override;
  std::size_t scratch_bytes(const Planes& /*planes*/) const override { return 0; }
  // F(4x4) multiplies the error of the product by 4.8: 1.5e-3 of TF32's 3e-4, where the class allows 1e-3.
  bool takes_tf32_products() const override { return outputs == 2; }
  bool masks_and_sums() const override { return true; }
};

}  // namespace twiddle
