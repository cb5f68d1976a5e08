#include <algorithm>
#include <cmath>

#include "fft/cpu/cpu_backend.h"

namespace twiddle {

namespace {

constexpr int most_grids = 8;
constexpr int largest = 512;  // points of a side

// Sizes from `least` on, a few of them.
std::vector<int> sizes_from(int least, int step) {
  std::vector<int> sizes;
  for (int points = (least + step - 1) / step * step; points <= largest && sizes.size() < 3; points += step)
    if (FftPlan::can(points)) sizes.push_back(points);
  return sizes;
}

// About the nanoseconds of a core for all three passes, with the rates of one that has AVX-512: of another the order is
// much the same.
double cost_of(const ConvProblem& problem, const FrequencyGrid& grid, int lanes) {
  constexpr double operations = 90, product_flops = 110, bytes = 12;  // a nanosecond
  const auto filled = [&](int planes) { return std::ceil(double(planes) / problem.groups / lanes) * lanes; };
  const double images = problem.batch * static_cast<double>(grid.tiles()), groups = problem.groups;
  const double channels = filled(problem.channels), filters = filled(problem.filters);
  const double bins = static_cast<double>(grid.bins());
  const double transform =
      0.5 * (FftPlan(grid.width).operations() * grid.height + FftPlan(grid.height).operations() * grid.width) /
      operations;
  const double transfer = 8 * bins / bytes;
  const double images_cost = 2 * images * (channels + filters) * (transform + transfer);
  const double weights_cost = 2 * channels * filters * (0.25 * transform + transfer);
  const double products_cost = 3 * 8 * images * channels * filters * bins / product_flops;
  return groups * (images_cost + weights_cost + products_cost);
}

}  // namespace

std::vector<FrequencyGrid> CpuTransform::grids(const ConvProblem& problem) const {
  if (problem.stride_h != 1 || problem.stride_w != 1 || problem.dilation != 1) return {};
  std::vector<FrequencyGrid> grids;
  const auto add = [&](const FrequencyGrid& grid) {
    if (std::find(grids.begin(), grids.end(), grid) == grids.end()) grids.push_back(grid);
  };
  for (const int height : sizes_from(least_height(problem), 1))
    for (const int width : sizes_from(least_width(problem), 2)) add(whole_plane(problem, height, width));
  for (const int points : {16, 18, 20, 24, 28, 30, 32, 36, 40, 48, 56, 60, 64, 80, 96, 128}) {
    // A side that one tile covers with fewer points is left whole.
    const std::vector<int> heights = sizes_from(least_height(problem), 1), widths = sizes_from(least_width(problem), 2);
    const int height = heights.empty() ? points : std::min(points, heights.front());
    const int width = widths.empty() ? points : std::min(points, widths.front());
    if (height >= problem.kernel_h && width >= problem.kernel_w && (height == points || width == points))
      add(tiled(problem, height, width));
  }
  std::map<FrequencyGrid, double> costs;
  for (const FrequencyGrid& grid : grids) costs[grid] = cost_of(problem, grid, kernels_.lanes);
  std::stable_sort(grids.begin(), grids.end(),
                   [&](const FrequencyGrid& a, const FrequencyGrid& b) { return costs[a] < costs[b]; });
  if (grids.size() > most_grids) grids.resize(most_grids);
  return grids;
}

}  // namespace twiddle
