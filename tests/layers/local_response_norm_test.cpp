#include "tests/support/check_layer.h"
#include "tests/support/noise.h"

namespace twiddle {

namespace {

struct Definition {
  Shape shape;
  std::int64_t reach;
  double scale, beta, k;

  std::int64_t pixels() const { return shape[2] * shape[3]; }
  double at(const std::vector<float>& values, std::int64_t image, std::int64_t channel, std::int64_t pixel) const {
    const std::int64_t i = (image * shape[1] + channel) * pixels() + pixel;
    return channel < 0 || channel >= shape[1] ? 0 : values.at(static_cast<std::size_t>(i));
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
    for (std::int64_t image = 0; image < shape[0]; ++image)
      for (std::int64_t channel = 0; channel < shape[1]; ++channel)
        for (std::int64_t pixel = 0; pixel < pixels(); ++pixel)
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

}  // namespace

TEST_P(EveryDevice, LocalResponseNormDividesByItsNeighbours) {
  // size 3, alpha 3, beta 1, k 1: y = x / (1 + sum of squares of the neighbours and itself)
  expect_close(run_layer(GetParam(), "local_response_norm", {{"size", "3"}, {"alpha", "3"}, {"beta", "1"}, {"k", "1"}},
                         {1, 4, 1, 1}, {1, 2, 0, 3}),
               {1.0f / 6, 2.0f / 6, 0, 3.0f / 10});
}

TEST_P(EveryDevice, LocalResponseNormOfAlexNet) {  // one channel: x / (2 + 1e-4 / 5 x^2)^0.75
  expect_close(run_layer(GetParam(), "local_response_norm", {}, {1, 1, 1, 2}, {100, -3}),
               {100 / std::pow(2.2f, 0.75f), -3 / std::pow(2.00018f, 0.75f)});
}

TEST_P(EveryDevice, LocalResponseNormForgetsLargeValuesThatLeftItsWindow) {
  const std::vector<float> y = run_layer(GetParam(), "local_response_norm", {{"size", "3"}, {"alpha", "3"}, {"k", "1"}},
                                         {1, 4, 1, 1}, {1e6f, 0, 0, 1e-3f});
  EXPECT_NEAR(y[3], 1e-3f, 1e-8f);
}

TEST_P(EveryDevice, LocalResponseNormOfWhatIsTooLargeToSquareIsZero) {
  expect_close(run_layer(GetParam(), "local_response_norm", {}, {1, 2, 1, 1}, {1e30f, 1}), {0, 0});
}

TEST_P(EveryDevice, LocalResponseNormGradients) {
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}}, {2, 7, 3, 5});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}}, {2, 21, 3, 5});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}}, {2, 48, 3, 3});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "2"}, {"beta", "0.6"}, {"k", "1"}}, {1, 4, 2, 3});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}, {"size", "9"}}, {2, 3, 1, 1});
  expect_gradients(GetParam(), "local_response_norm", {{"alpha", "1"}, {"size", "1"}}, {2, 5});
}

// Channels and pixels go some at a time: what is left over must come out the same.
TEST_P(EveryDevice, LocalResponseNormIsWhatTheDefinitionSays) {
  const auto check = [&](std::int64_t channels, std::int64_t height, std::int64_t width, int size, double beta) {
    SCOPED_TRACE(join(channels, "x", height, "x", width, ", size ", size, ", beta ", beta));
    const Definition definition{{2, channels, height, width}, size / 2, 1.5 / size, beta, 2};
    LayerUnderTest test(GetParam(), "local_response_norm",
                        {{"size", join(size)}, {"alpha", "1.5"}, {"beta", join(beta)}, {"k", "2"}},
                        {channels, height, width});
    const std::vector<float> x = noise(count_of(definition.shape), 1), grad_y = noise(count_of(definition.shape), 2);
    const auto passes = test.forward_and_backward(definition.shape, x, grad_y);
    expect_close(passes.y, definition.normalized(x), 2e-6f);
    expect_close(passes.grad_x, definition.gradient(x, grad_y), 4e-6f);
  };
  for (std::int64_t channels = 1; channels < 20; ++channels) check(channels, 5, 7, 5, 0.75);
  for (const int size : {1, 3, 9, 41}) check(13, 4, 4, size, 0.75);
  check(96, 3, 11, 5, 0.6);
}

TEST(LocalResponseNorm, NeedsAWindowWithAMiddle) {
  EXPECT_NE(layer_error("local_response_norm", {{"size", "4"}}, {3, 2, 2}).find("must be odd"), std::string::npos);
}

}  // namespace twiddle
