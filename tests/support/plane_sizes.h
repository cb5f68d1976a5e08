#pragma once
#include <utility>
#include <vector>

namespace twiddle {

// Returns height and width of the planes that fbfft transforms in one launch.
inline std::vector<std::pair<int, int>> plane_sizes() {
  std::vector<std::pair<int, int>> sizes{{8, 32}, {32, 8}, {16, 64}, {64, 16}};
  for (const int points : {8, 10, 12, 14, 16, 18, 20, 24, 32}) {
    sizes.emplace_back(points, 2 * points);
    sizes.emplace_back(2 * points, points);
  }
  for (const int points : {2, 4, 8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48, 64})
    sizes.emplace_back(points, points);
  return sizes;
}

}  // namespace twiddle
