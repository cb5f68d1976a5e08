#pragma once
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "fft/grid.h"
#include "framework/context.h"

namespace twiddle {

// What an inverse transform does with each element on its way out.
struct PlaneEpilogue {
  const float* bias = nullptr;  // one a column; null: none
  bool relu = false;
};

// Real Fourier transforms of planes, in one way of storing spectra that its products know.
class SpectralTransform {
 public:
  virtual ~SpectralTransform() = default;
  virtual std::string_view name() const = 0;  // of the way, among those of an engine: "geam"
  // The grids it can do for a problem, the likely best first; empty: none.
  virtual std::vector<FrequencyGrid> grids(const ConvProblem& problem) const = 0;
  virtual std::int64_t bins(const FrequencyGrid& grid) const { return grid.bins(); }  // it stores: those or fewer
  virtual std::size_t spectrum_bytes(const Planes& planes) const = 0;
  virtual std::size_t scratch_bytes(const Planes& planes) const = 0;  // beside the spectrum, forward or inverse
  // `source` and `target` are the operand's tensors; `scratch` has scratch_bytes. Where tiles overlap, inverse() adds
  // them; else it writes each element of the planes once, whatever they held before.
  virtual void forward(Context& ctx, const Planes& planes, const float* source, void* spectrum, void* scratch) = 0;
  virtual void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target,
                       const PlaneEpilogue& epilogue, void* scratch) = 0;
};

}  // namespace twiddle
