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

// About the nanoseconds of a core for all three passes.
double cost_of(const ConvProblem& problem, const FrequencyGrid& grid, int lanes) {
  const auto blocks = [&](double planes) { return std::ceil(planes / lanes) * lanes; };
  const double batch = problem.batch * static_cast<double>(grid.tiles()), groups = problem.groups;
  const double channels = blocks(problem.channels / groups), filters = blocks(problem.filters / groups);
  const double bins = static_cast<double>(grid.bins());
  const double points = static_cast<double>(grid.height) * grid.width;
  const double transform =
      0.5 * points * (FftPlan(grid.width).flops() / grid.width + FftPlan(grid.height).flops() / grid.height);
  const double planes = groups * (2 * batch * (channels + filters) + 3 * channels * problem.filters / groups);
  const double product = 3 * 8 * batch * channels * filters * groups * bins;
  const double bytes = 2 * 8 * bins * planes;
  return planes * transform / 30 + product / 120 + bytes / 10;
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
  for (const int points : {12, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48, 56, 60, 64, 80, 96, 128}) {
    const int height = std::min(
        points, sizes_from(least_height(problem), 1).empty() ? points : sizes_from(least_height(problem), 1).front());
    const int width = std::min(
        points, sizes_from(least_width(problem), 2).empty() ? points : sizes_from(least_width(problem), 2).front());
    if (height >= problem.kernel_h && width >= problem.kernel_w && (height == points || width == points))
      add(tiled(problem, height, width));
  }
  std::stable_sort(grids.begin(), grids.end(), [&](const FrequencyGrid& a, const FrequencyGrid& b) {
    return cost_of(problem, a, kernels_.lanes) < cost_of(problem, b, kernels_.lanes);
  });
  if (grids.size() > most_grids) grids.resize(most_grids);
  return grids;
}

}  // namespace twiddle
