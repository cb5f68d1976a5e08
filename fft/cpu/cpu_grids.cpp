#include <algorithm>
#include <cmath>

#include "fft/cpu/cpu_backend.h"
#include "fft/cpu/kernels/columns.h"

namespace twiddle {

namespace {

constexpr std::size_t most_grids = 8;
constexpr int largest = 512, largest_of_rows = 8192;  // points per side; of planes of one row
constexpr int shortest_step = 8;                      // outputs of a tile's side

// A grid's height or width.
struct Side {
  int points, tiles, step;
  double operations;  // of a transform
};

// `multiple`: 2 for rows of real numbers, which have points / 2 + 1 bins.
std::vector<Side> sides(int outputs, int kernel, int least_whole, int multiple, int most_points) {
  std::vector<Side> found;
  const auto good = [&](int points) {
    do points = (points + multiple - 1) / multiple * multiple;
    while (!FftPlan::can(points) && ++points);
    return points;
  };
  const auto add = [&](int points, int tiles, int step) {
    if (points > most_points || (!found.empty() && found.back().points == points)) return;
    found.push_back({points, tiles, step, FftPlan(points).operations()});
  };
  for (int points = good(least_whole), sizes = 0; sizes < 3; points = good(points + 1), ++sizes)
    add(points, 1, outputs);
  for (int tiles = 2, step; (step = (outputs + tiles - 1) / tiles) >= shortest_step; ++tiles) {
    const int points = good(step + kernel - 1), fitting = std::min(points - kernel + 1, outputs);
    add(points, (outputs + fitting - 1) / fitting, fitting);
  }
  return found;
}

// Estimates the ns per core of all three passes, with rates of a core with AVX-512. Other cores give nearly the same
// order.
double cost_of(const ConvProblem& problem, const Side& h, const Side& w, int lanes) {
  constexpr double operations = 90, product_flops = 110, bytes = 12;  // per ns
  const int groups = is_depthwise(problem) ? 1 : problem.groups;
  const auto filled = [&](int planes) { return std::ceil(double(planes) / groups / lanes) * lanes; };
  const double images = double(problem.batch) * h.tiles * w.tiles;
  const double channels = filled(problem.channels), filters = filled(problem.filters);
  const double bins = double(stored_bins(h.points, w.points));
  const double transform = 0.5 * (w.operations * h.points + h.operations * w.points) / operations;
  const double transfer = 8 * bins / bytes;
  const double images_cost = 2 * images * (channels + filters) * (transform + transfer);
  const double kernels = is_depthwise(problem) ? channels : channels * filters;
  const double weights_cost = 2 * kernels * (0.25 * transform + transfer);
  const double products_cost = 3 * 8 * images * kernels * bins / product_flops;
  return images_cost + weights_cost + products_cost;
}

}  // namespace

std::vector<FrequencyGrid> CpuTransform::grids(const ConvProblem& problem) const {
  if (problem.stride_h != 1 || problem.stride_w != 1 || problem.dilation != 1) return {};
  std::vector<std::pair<double, FrequencyGrid>> found;
  const bool rows = problem.height == 1 && problem.kernel_h == 1 && problem.out_height() == 1;
  const std::vector<Side> widths =
      sides(problem.out_width(), problem.kernel_w, least_width(problem), 2, rows ? largest_of_rows : largest);
  for (const Side& h : sides(problem.out_height(), problem.kernel_h, least_height(problem), 1, largest))
    for (const Side& w : widths)
      found.push_back({cost_of(problem, h, w, kernels_.lanes), {h.points, w.points, h.tiles, w.tiles, h.step, w.step}});
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<FrequencyGrid> grids;
  for (std::size_t i = 0; i < std::min(found.size(), most_grids); ++i) grids.push_back(found[i].second);
  return grids;
}

}  // namespace twiddle
