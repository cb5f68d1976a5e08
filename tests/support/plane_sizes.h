#pragma once
#include <utility>
#include <vector>

namespace twiddle {

// Of the planes that fbfft transforms in one launch: height, width.
inline std::vector<std::pair<int, int>> plane_sizes() {
  std::vector<std::pair<int, int>> sizes{{8, 16}, {16, 8}, {8, 32}, {32, 8}, {16, 32}, {32, 16}, {32, 64}, {64, 32}};
  for (const int points : {2, 4, 8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48, 64})
    sizes.emplace_back(points, points);
  return sizes;
}

}  // namespace twiddle
