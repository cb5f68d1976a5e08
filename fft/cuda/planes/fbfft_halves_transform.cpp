#include "fft/cuda/planes/fbfft_halves_transform.h"

#include "fft/cuda/stored_pairs/line_exponents.h"
#include "fft/cuda/stored_pairs/stored_products.h"

namespace twiddle {

std::vector<FrequencyGrid> FbfftHalvesTransform::grids(const ConvProblem& problem) const {
  const bool rounds = halves_a_float_ == 1;
  if (!can_multiply_stored(problem) || (rounds && problem.precision == Precision::fp32)) return {};
  std::vector<FrequencyGrid> grids = floats_.grids(problem);
  std::erase_if(grids, [&](const FrequencyGrid& grid) { return !floats_.stores_halves(grid); });
  return grids;
}

std::size_t FbfftHalvesTransform::scratch_bytes(const Planes& planes) const {
  return stored_pairs::exponents_scratch_bytes(planes);
}

void FbfftHalvesTransform::forward(Context& ctx, const Planes& planes, const PlaneSource& source, void* spectrum,
                                   void* scratch) {
  const stored_pairs::StoredSpectrum of = stored(planes);
  int* const of_columns = of.of_columns(spectrum);
  int* const of_rows = of.of_rows(spectrum);
  // A mask only reduces magnitudes: bounds are valid without it. No other launch may come between these two
  // (planes/plane_launch.h).
  stored_pairs::find_exponents(*ctx.stream, planes, source.values, scratch, of_columns, of_rows);
  floats_.forward_as_halves(ctx, planes, source, spectrum, halves_a_float_, of_columns, of_rows);
}

void FbfftHalvesTransform::sum_columns(Context& ctx, const Planes& planes, const void* spectrum, bool add,
                                       float* sums) {
  stored_pairs::sum_first_bin(*ctx.stream, stored(planes), spectrum, add, sums);
}

}  // namespace twiddle
