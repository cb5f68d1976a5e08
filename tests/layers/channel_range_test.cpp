// Runs the GPU threads of local response normalization on the CPU and compares them with the definition.
#include "layers/cuda/channel_range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/error.h"
#include "tests/support/check_close.h"
#include "tests/support/noise.h"

namespace twiddle {
namespace {

constexpr int reach = 2;
constexpr double k = 2, scale = 0.3;

struct PowerOf {
  double beta;
  Powers operator()(float base) const { return {std::pow(base, static_cast<float>(-beta)), 1 / base}; }
};

struct Problem {
  std::int64_t images, channels, pixels;
  double beta;

  std::int64_t size() const { return images * channels * pixels; }
  double at(const std::vector<float>& values, std::int64_t image, std::int64_t channel, std::int64_t pixel) const {
    const std::int64_t i = (image * channels + channel) * pixels + pixel;
    return channel < 0 || channel >= channels ? 0 : values.at(static_cast<std::size_t>(i));
  }
  double base(const std::vector<float>& x, std::int64_t image, std::int64_t channel, std::int64_t pixel) const {
    double sum = k;
    for (std::int64_t other = channel - reach; other <= channel + reach; ++other)
      sum += scale * std::pow(at(x, image, other, pixel), 2);
    return sum;
  }
  template <class Value>
  std::vector<float> each(const Value& value) const {
    std::vector<float> all;
    for (std::int64_t image = 0; image < images; ++image)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        for (std::int64_t pixel = 0; pixel < pixels; ++pixel)
          all.push_back(static_cast<float>(value(image, channel, pixel)));
    return all;
  }
  std::vector<float> normalized(const std::vector<float>& x) const {
    return each([&](auto... place) { return at(x, place...) * std::pow(base(x, place...), -beta); });
  }
  std::vector<float> gradient(const std::vector<float>& x, const std::vector<float>& grad_y) const {
    return each([&](std::int64_t image, std::int64_t channel, std::int64_t pixel) {
      double sum = at(grad_y, image, channel, pixel) * std::pow(base(x, image, channel, pixel), -beta);
      for (std::int64_t other = channel - reach; other <= channel + reach; ++other)
        sum -= 2 * scale * beta * at(x, image, channel, pixel) * at(grad_y, image, other, pixel) *
               at(x, image, other, pixel) * std::pow(base(x, image, other, pixel), -beta - 1);
      return sum;
    });
  }
};

template <int Length>
void expect_as_defined(const Problem& problem) {
  SCOPED_TRACE(join("ranges of ", Length, " of ", problem.channels, " channels"));
  const std::vector<float> x = noise(problem.size(), 1), grad_y = noise(problem.size(), 2);
  const ChannelRange<Length> range({problem.channels, problem.pixels, reach});
  const std::int64_t threads = range.count(problem.images * problem.channels);
  const WindowBase<reach> base{k, static_cast<float>(scale)};
  const PowerOf power{problem.beta};

  std::vector<float> y(x.size(), std::numeric_limits<float>::quiet_NaN()), grad_x = y;
  const NormalizeRange<reach, Length, PowerOf, float> forward{range, power, base, x.data(), y.data()};
  for (std::int64_t thread = 0; thread < threads; ++thread) forward(thread);
  expect_close(y, problem.normalized(x), 1e-6f);

  const auto factor = static_cast<float>(2 * scale * problem.beta);
  const BackwardRange<reach, Length, PowerOf, float> backward{range,    power,         base,         factor,
                                                              x.data(), grad_y.data(), grad_x.data()};
  for (std::int64_t thread = 0; thread < threads; ++thread) backward(thread);
  expect_close(grad_x, problem.gradient(x, grad_y), 2e-6f);
}

TEST(ChannelRange, OneChannel) {
  for (const std::int64_t channels : {1, 2, 3, 7}) expect_as_defined<1>({2, channels, 3, 0.75});
}

TEST(ChannelRange, WholeRanges) {
  expect_as_defined<4>({3, 4, 5, 0.75});
  expect_as_defined<8>({2, 16, 7, 0.75});
  expect_as_defined<16>({2, 64, 9, 0.6});
}

TEST(ChannelRange, LastRangeOverlapsIfIncomplete) {
  for (std::int64_t channels = 4; channels < 14; ++channels) expect_as_defined<4>({2, channels, 3, 0.75});
  for (std::int64_t channels = 16; channels < 37; ++channels) expect_as_defined<16>({2, channels, 2, 1});
}

}  // namespace
}  // namespace twiddle
