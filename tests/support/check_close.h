#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace twiddle {

// Checks that each value is within `tolerance` of the expected one, relative to the largest expected magnitude (at
// least 1). A NaN matches only a NaN.
inline void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                         float tolerance = 1e-5f) {
  ASSERT_EQ(actual.size(), expected.size());
  float scale = 1;
  for (const float value : expected)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i]))
      EXPECT_TRUE(std::isnan(actual[i])) << "element " << i << " is " << actual[i];
    else
      EXPECT_TRUE(std::abs(actual[i] - expected[i]) <= tolerance * scale)
          << "element " << i << " is " << actual[i] << ", expected " << expected[i];
  }
}

// Root mean square of the difference over that of the expected values.
inline double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double(actual.at(i)) - expected[i], 2);
    size += std::pow(double(expected[i]), 2);
  }
  return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

}  // namespace twiddle
