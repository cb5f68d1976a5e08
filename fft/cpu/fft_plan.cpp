#include "fft/cpu/fft_plan.h"

#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "framework/error.h"

namespace twiddle {

namespace {

// Additions and multiplications of one small transform as in dft.h; a fused multiply-add counts as one.
const std::map<int, int> costs{{2, 4}, {3, 16}, {4, 16}, {5, 36}, {6, 44}, {7, 66}, {8, 56}, {9, 120}, {10, 92}};

struct Factors {
  std::vector<int> radices;
  double cost = 0;  // operations per point
};

// Returns the cheapest factorization of `points` into small transforms; the cost of each includes its loads and stores.
Factors factors_of(int points) {
  if (points == 1) return {};
  Factors best{{}, std::numeric_limits<double>::infinity()};
  for (const auto& [radix, operations] : costs) {
    if (points % radix != 0) continue;
    const Factors rest = factors_of(points / radix);
    const double cost = rest.cost + 8 + (operations + 4.0 * (radix - 1)) / radix;
    if (cost >= best.cost) continue;
    best = {{radix}, cost};
    best.radices.insert(best.radices.end(), rest.radices.begin(), rest.radices.end());
  }
  return best;
}

}  // namespace

bool FftPlan::can(int points) {
  if (points < 1) return false;
  for (const int factor : {2, 3, 5, 7})
    while (points % factor == 0) points /= factor;
  return points == 1;
}

FftPlan::FftPlan(int points) : steps_{points, 0, {}} {
  require(can(points), "a Fourier transform of ", points, " points: only products of 2, 3, 5 and 7 can be done");
  Factors factors = factors_of(points);
  if (factors.radices.empty()) factors.radices = {1};
  require(factors.radices.size() <= FftSteps::most, "a Fourier transform of ", points, " points is too long");
  operations_ = factors.cost * points;
  int spacing = 1;
  for (const int radix : factors.radices) {
    const int length = points / spacing, groups = length / radix;
    std::vector<float>& roots = roots_[steps_.count];
    for (int group = 0; group < groups; ++group)
      for (int output = 1; output < radix; ++output) {
        const double angle = -2 * std::numbers::pi * group * output / length;
        roots.push_back(static_cast<float>(std::cos(angle)));
        roots.push_back(static_cast<float>(std::sin(angle)));
      }
    steps_.step[steps_.count++] = {radix, groups, spacing, roots.data()};
    spacing *= radix;
  }
}

std::vector<float> roots_of_row(int points) {
  std::vector<float> roots;
  for (int i = 0; 4 * i <= points; ++i) {
    const double angle = 2 * std::numbers::pi * i / points;
    roots.push_back(static_cast<float>(std::cos(angle)));
    roots.push_back(static_cast<float>(std::sin(angle)));
  }
  return roots;
}

std::vector<float> roots_of_few(int points, int few) {
  std::vector<float> roots;
  for (int bin = 0; bin <= points / 2; ++bin)
    for (int i = 0; i < few; ++i) {
      const double angle = 2 * std::numbers::pi * (bin * i % points) / points;
      roots.push_back(static_cast<float>(std::cos(angle)));
      roots.push_back(static_cast<float>(std::sin(angle)));
    }
  return roots;
}

}  // namespace twiddle
