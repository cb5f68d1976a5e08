#include "fft/cuda/planes/fbfft_grids.h"

#include <algorithm>
#include <initializer_list>

#include "fft/cuda/complex_pairs/pair_products.h"
#include "fft/cuda/complex_pairs/tuned_on_h100.h"
#include "fft/cuda/planes/tuned_on_h200.h"

namespace twiddle {

namespace {

// More are not worth the time to measure them.
constexpr std::size_t most_grids = 8;

// What the products of a problem reach at best.
double operations_a_ms(const ConvProblem& problem) {
  const bool fp32 = problem.precision == Precision::fp32;
  if (can_multiply_pairs(problem)) return fp32 ? complex_pairs::operations_a_ms : complex_pairs::halves_operations_a_ms;
  return fp32 ? small_fft::fp32_operations_a_ms : small_fft::tf32_operations_a_ms;
}

// An estimate for the three passes together, by which the slowest grids are left out: all bytes that transforms and
// products move, and all operations of the products, at rates that were measured (tuned_on_*.h).
double estimated_ms(const ConvProblem& problem, const FrequencyGrid& grid, double operations_a_ms) {
  constexpr double bin_bytes = 8;
  const double bytes_a_ms =
      std::max(grid.height, grid.width) <= 32 ? small_fft::bytes_a_ms_to_32_points : small_fft::bytes_a_ms_beyond;
  const double bins = static_cast<double>(grid.height) * grid.width / 2 + 2;
  double bytes = 0, operations = 8 * 3 * bins / problem.groups;
  for (const ConvOperand operand : {ConvOperand::x, ConvOperand::w, ConvOperand::y}) {
    const Planes planes = planes_of(problem, operand, grid);
    const auto count = static_cast<double>(planes.rows * planes.columns);
    const double spectra = static_cast<double>(planes.matrix_rows() * planes.columns) * bins * bin_bytes;
    // One transform of the operand, one of its gradient, and each of the products reads or writes it.
    bytes += 2 * (count * planes.height * planes.width * sizeof(float) + spectra) + 3 * spectra;
    if (operand == ConvOperand::x) operations *= static_cast<double>(planes.matrix_rows() * planes.columns);
    if (operand == ConvOperand::y) operations *= static_cast<double>(planes.columns);
  }
  return bytes / bytes_a_ms + operations / operations_a_ms;
}

}  // namespace

std::vector<FrequencyGrid> fbfft_grids(const ConvProblem& problem, const std::vector<std::pair<int, int>>& sizes) {
  std::vector<std::pair<double, FrequencyGrid>> found;
  const double rate = operations_a_ms(problem);
  const auto add = [&](const FrequencyGrid& grid) { found.emplace_back(estimated_ms(problem, grid, rate), grid); };
  for (const auto& [height, width] : sizes) {
    if (height >= least_height(problem) && width >= least_width(problem)) {
      add(whole_plane(problem, height, width));
    } else if (height >= problem.kernel_h && width >= problem.kernel_w) {
      add(tiled(problem, height, width));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<FrequencyGrid> grids;
  for (const auto& [milliseconds, grid] : found) grids.push_back(grid);
  if (grids.size() > most_grids) grids.resize(most_grids);
  return grids;
}

}  // namespace twiddle
