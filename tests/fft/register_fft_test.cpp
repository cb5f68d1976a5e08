#include "fft/cuda/device/register_fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "framework/error.h"

namespace twiddle::small_fft {
namespace {

// Returns the relative error of a transform of random values against its definition.
template <int Sign, int Points>
double error() {
  std::mt19937 random(Points);
  std::normal_distribution<float> normal;
  Complex v[Points];
  std::vector<std::complex<double>> before;
  for (Complex& value : v) {
    value = {normal(random), normal(random)};
    before.emplace_back(value.re, value.im);
  }
  transform<Sign>(v);
  double wrong = 0, all = 0;
  for (int k = 0; k < Points; ++k) {
    std::complex<double> expected = 0;
    for (int j = 0; j < Points; ++j)
      expected += before[static_cast<std::size_t>(j)] * std::polar(1., Sign * 2 * M_PI * (j * k % Points) / Points);
    wrong += std::norm(expected - std::complex<double>(v[k].re, v[k].im));
    all += std::norm(expected);
  }
  return std::sqrt(wrong / all);
}

template <int... Points>
void expect_small_errors() {
  const auto check = [](int points, double forward, double backward) {
    EXPECT_LE(forward, 2e-7) << points << " points";
    EXPECT_LE(backward, 2e-7) << points << " points, backwards";
  };
  (check(Points, error<forwards, Points>(), error<backwards, Points>()), ...);
}

TEST(RegisterFft, MatchesDefinition) {
  expect_small_errors<1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 18, 20, 24, 28, 30, 32, 36, 40, 48, 64, 49, 45, 105>();
}

TEST(RegisterFft, TwiddleFactorsAreExactInDouble) {
  for (const int n : {2, 3, 5, 7, 8, 12, 30, 48, 64, 256})
    for (int k = 0; k < n; ++k) {
      EXPECT_NEAR(detail::turn_cos(k, n), std::cos(2 * M_PI * k / n), 1e-15) << k << " of " << n;
      EXPECT_NEAR(detail::turn_sin(k, n), std::sin(2 * M_PI * k / n), 1e-15) << k << " of " << n;
    }
}

}  // namespace
}  // namespace twiddle::small_fft
