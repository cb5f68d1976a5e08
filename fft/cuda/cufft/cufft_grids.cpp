#include "fft/cuda/cufft/cufft_grids.h"

#include <algorithm>
#include <utility>

#include "fft/cuda/cufft/tuned_on_h200.h"

namespace twiddle {

namespace {

// More grids would not be worth the time to measure them.
constexpr std::size_t most_grids = 12;
// The kernels that pad count the points of a plane in 32 bits.
constexpr std::int64_t most_bins = std::int64_t(1) << 29;

int without_factor(int size, int factor) {
  while (size % factor == 0) size /= factor;
  return size;
}

int next_power_of_two(int size) {
  int power = 1;
  while (power < size) power *= 2;
  return power;
}

// How much longer a point takes than in a transform of a power of two.
double slowness(int size) {
  double slower = 1;
  for (const auto& [factor, cost] : {std::pair{3, more_for_3}, {5, more_for_5}, {7, more_for_7}})
    for (; size % factor == 0; size /= factor) slower += cost;
  return slower;
}

// In proportion to the time, by which slow grids are left out: the work grows with the bins.
double estimate(const FrequencyGrid& grid) {
  return static_cast<double>(grid.bins()) * slowness(grid.height) * slowness(grid.width) *
         (grid.width % 2 == 0 ? 1 : times_for_odd_rows);
}

}  // namespace

std::vector<int> smooth_sizes(int least) {
  std::vector<int> sizes;
  for (int size = least; size <= next_power_of_two(least); ++size)
    if (without_factor(without_factor(without_factor(without_factor(size, 2), 3), 5), 7) == 1) sizes.push_back(size);
  return sizes;
}

std::vector<FrequencyGrid> cufft_grids(const ConvProblem& problem) {
  constexpr int longest = 1 << 15;
  const int height = least_height(problem), width = std::max(least_width(problem), 2);
  if (height > longest || width > longest) return {};
  std::vector<FrequencyGrid> grids;
  for (const int h : smooth_sizes(height))
    for (const int w : smooth_sizes(width)) grids.push_back(whole_plane(problem, h, w));
  std::erase_if(grids, [](const FrequencyGrid& grid) { return grid.bins() > most_bins; });
  std::stable_sort(grids.begin(), grids.end(), [](const auto& a, const auto& b) { return estimate(a) < estimate(b); });
  if (grids.size() <= most_grids) return grids;
  const FrequencyGrid powers = whole_plane(problem, next_power_of_two(height), next_power_of_two(width));
  const bool among_the_best =
      std::find(grids.begin(), grids.begin() + most_grids, powers) != grids.begin() + most_grids;
  grids.resize(most_grids);
  if (!among_the_best && powers.bins() <= most_bins) grids.back() = powers;
  return grids;
}

}  // namespace twiddle
