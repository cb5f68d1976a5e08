#pragma once
#include <cmath>
#include <vector>

namespace twiddle {

// Normalizes values in double, without scale and bias.
inline std::vector<float> normalized(const std::vector<float>& x, double epsilon = 1e-5) {
  double mean = 0, variance = 0;
  for (const float value : x) mean += value / static_cast<double>(x.size());
  for (const float value : x) variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
  std::vector<float> y;
  for (const float value : x) y.push_back(static_cast<float>((value - mean) / std::sqrt(variance + epsilon)));
  return y;
}

}  // namespace twiddle
