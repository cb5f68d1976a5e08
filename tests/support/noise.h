#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace twiddle {

// Normally distributed values that depend only on the seed.
inline std::vector<float> noise(std::int64_t count, unsigned seed = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace twiddle
