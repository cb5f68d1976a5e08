#pragma once
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "fft/grid.h"
#include "fft/spectrum_storage.h"
#include "framework/context.h"
#include "framework/error.h"

namespace twiddle {

// What a transform reads: elements of `values`, those where `mask` (null: none) is not above zero as zeros.
struct PlaneSource {
  const float* values;
  const float* mask;
  PlaneSource(const float* all_values, const float* all_masks = nullptr) : values(all_values), mask(all_masks) {}
};

// What an inverse transform does with each element on its way out.
struct PlaneEpilogue {
  const float* bias = nullptr;  // one a column; null: none
  bool relu = false;
};

// Real Fourier transforms of planes.
class SpectralTransform {
 public:
  virtual ~SpectralTransform() = default;
  virtual std::string_view name() const = 0;    // among those of an engine: "F(2x2)"
  virtual SpectrumStorage storage() const = 0;  // in which it writes and reads spectra
  // The grids it can do for a problem, the likely best first; empty: none.
  virtual std::vector<FrequencyGrid> grids(const ConvProblem& problem) const = 0;
  virtual std::int64_t bins(const FrequencyGrid& grid) const { return grid.bins(); }  // it stores: those or fewer
  virtual std::size_t spectrum_bytes(const Planes& planes) const = 0;                 // that forward() writes
  // That inverse() reads: a product of two spectra, which may be stored otherwise than they are.
  virtual std::size_t product_bytes(const Planes& planes) const { return spectrum_bytes(planes); }
  virtual std::size_t scratch_bytes(const Planes& planes) const = 0;  // beside the spectrum, forward or inverse
  // Whether a product whose factors are rounded to TF32 still keeps that class after inverse().
  virtual bool takes_tf32_products() const { return true; }
  // Whether forward() knows masks, and sum_columns() sums.
  virtual bool masks_and_sums() const { return false; }
  // Spectra may be scaled: forward() makes factors, inverse() is of a product of two, and undoes the scale of both.
  // `source` and `target` are the operand's tensors; `scratch` has scratch_bytes. Where tiles overlap, inverse() adds
  // them; else it writes each element of the planes once, whatever they held before.
  virtual void forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum,
                       void* scratch) = 0;
  virtual void inverse(Context& ctx, const Planes& planes, const void* spectrum, float* target,
                       const PlaneEpilogue& epilogue, void* scratch) = 0;
  // sums[column], or what it holds and, where `add`: the sum over all elements of the column's planes, which each
  // spectrum's constant part is.
  virtual void sum_columns(Context& /*ctx*/, const Planes& /*planes*/, const void* /*spectrum*/, bool /*add*/,
                           float* /*sums*/) {
    throw Error(join(name(), " sums no columns"));
  }
};

}  // namespace twiddle
