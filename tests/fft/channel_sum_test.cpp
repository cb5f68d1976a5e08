// Runs the blocks that sum a depthwise weight gradient in the frequency domain on the CPU.
#include "fft/cuda/products/channel_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <vector>

#include "tests/support/noise.h"

namespace twiddle::small_fft {
namespace {

std::vector<Complex> numbers(std::int64_t count, int seed) {
  const std::vector<float> parts = noise(2 * count, seed);
  std::vector<Complex> made;
  for (std::size_t i = 0; i < parts.size(); i += 2) made.push_back({parts[i], parts[i + 1]});
  return made;
}

std::complex<double> number(Complex value) {
  return {value.re, value.im};
}

void follow(const ChannelSumArguments& arguments) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t block = 0; block < arguments.blocks(); ++block) {
    const auto shared = std::make_unique<ChannelSumBlock::Shared>();
    for (auto& warp : shared->sums)
      for (Complex& sum : warp) sum = {nan, nan};
    for (int thread = 0; thread < ChannelSumBlock::threads; ++thread)
      ChannelSumBlock::sum(arguments, block, thread, *shared);
    for (int thread = 0; thread < ChannelSumBlock::threads; ++thread)
      ChannelSumBlock::store(arguments, block, thread, *shared);
  }
}

void expect_sums(std::int64_t rows, std::int64_t columns, std::int64_t part, bool accumulate) {
  constexpr std::int64_t bins = 3;
  const std::int64_t parts = (rows + part - 1) / part;
  const std::vector<Complex> a = numbers(bins * rows * columns, 1), b = numbers(bins * rows * columns, 2);
  const std::vector<Complex> before = numbers(parts * bins * columns, 3);
  std::vector<Complex> c = before;
  follow({a.data(), b.data(), c.data(), bins, rows, columns, part, Divisor(parts),
          Divisor((columns + ChannelSumBlock::columns - 1) / ChannelSumBlock::columns), accumulate});
  for (std::int64_t i = 0; i < parts * bins * columns; ++i) {
    const std::int64_t column = i % columns, bin = i / columns % bins, first = i / columns / bins * part;
    std::complex<double> sum = accumulate ? number(before[static_cast<std::size_t>(i)]) : 0;
    for (std::int64_t row = first; row < std::min(first + part, rows); ++row) {
      const auto place = static_cast<std::size_t>((bin * rows + row) * columns + column);
      sum += std::conj(number(a[place])) * number(b[place]);
    }
    EXPECT_NEAR(std::abs(number(c[static_cast<std::size_t>(i)]) - sum), 0, 1e-5) << rows << " rows, number " << i;
  }
}

TEST(ChannelSum, SumsRowsPerBinAndColumn) {
  expect_sums(20, 32, 4096, false);
  expect_sums(5, 37, 4096, true);  // fewer rows than warps
  expect_sums(150, 3, 64, false);  // three results
}

}  // namespace
}  // namespace twiddle::small_fft
