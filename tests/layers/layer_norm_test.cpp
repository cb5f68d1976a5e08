#include <cmath>

#include "tests/support/check_layer.h"
#include "tests/support/noise.h"
#include "tests/support/norm_reference.h"

namespace twiddle {

namespace {

// Returns the channels of each pixel of [batch, channels, inner], one pixel after another.
std::vector<float> pixels_of(const std::vector<float>& x, std::size_t channels, std::size_t inner) {
  std::vector<float> pixels;
  for (std::size_t image = 0; image < x.size() / channels / inner; ++image)
    for (std::size_t pixel = 0; pixel < inner; ++pixel)
      for (std::size_t channel = 0; channel < channels; ++channel)
        pixels.push_back(x[(image * channels + channel) * inner + pixel]);
  return pixels;
}

// Normalizes each run of `size` values separately.
std::vector<float> normalized_in_runs(const std::vector<float>& x, std::size_t size) {
  std::vector<float> y;
  for (std::size_t begin = 0; begin < x.size(); begin += size)
    for (const float value : normalized(std::vector<float>(x.begin() + begin, x.begin() + begin + size)))
      y.push_back(value);
  return y;
}

std::vector<float> far_from_zero(std::vector<float> x) {
  for (float& value : x) value += 1000;
  return x;
}

}  // namespace

TEST_P(EveryDevice, LayerNormNormalizesChannelsPerPixel) {
  LayerUnderTest test(GetParam(), "layer_norm", {}, {2, 1, 2});
  test.set("scale", {1, 10});
  test.set("bias", {0, 5});
  // One pixel holds 1 and 3: mean 2, deviation 1; the other 0 and 8: mean 4, deviation 4.
  expect_close(test.forward({1, 2, 1, 2}, {1, 0, 3, 8}), {-1, -1, 15, 15});
}

TEST_P(EveryDevice, LayerNormOverChannelsMatchesDouble) {
  for (const std::int64_t channels : {3, 33, 300}) {
    const Shape shape{3, channels, 7, 11};
    const std::vector<float> x = noise(count_of(shape), 1);
    const auto each = static_cast<std::size_t>(channels);
    for (const std::vector<float>& values : {x, far_from_zero(x)})
      EXPECT_LE(relative_error(pixels_of(run_layer(GetParam(), "layer_norm", {}, shape, values), each, 77),
                               normalized_in_runs(pixels_of(values, each, 77), each)),
                1e-4)
          << channels << " channels";
  }
}

TEST_P(EveryDevice, LayerNormOverAllNormalizesImages) {
  LayerUnderTest test(GetParam(), "layer_norm", {{"over", "all"}}, {2, 1, 2});
  test.set("scale", {1, 2, 3, 4});
  test.set("bias", {0, 0, 0, 5});
  expect_close(test.forward({2, 2, 1, 2}, {-1, -1, 1, 1, 7, 7, 9, 9}), {-1, -2, 3, 9, -1, -2, 3, 9});
}

TEST_P(EveryDevice, LayerNormOverAllMatchesDouble) {
  const Shape shape{3, 4, 25, 40};
  const std::vector<float> x = noise(count_of(shape), 1);
  for (const std::vector<float>& values : {x, far_from_zero(x)})
    expect_close(run_layer(GetParam(), "layer_norm", {{"over", "all"}}, shape, values),
                 normalized_in_runs(values, 4000), 1e-4f);
}

TEST_P(EveryDevice, LayerNormNormalizesRowsOfFeatures) {
  for (const char* over : {"channels", "all"})
    expect_close(run_layer(GetParam(), "layer_norm", {{"over", over}}, {2, 4}, {-1, -1, 1, 1, 7, 9, 7, 9}),
                 {-1, -1, 1, 1, -1, 1, -1, 1});
}

// NaN makes the overflow visible; zeros would hide it.
TEST_P(EveryDevice, LayerNormOfInfiniteVarianceIsNaN) {
  std::vector<float> x;
  for (int i = 0; i < 24; ++i) x.push_back(i % 8 < 4 ? 1e30f : -1e30f);
  for (const char* over : {"channels", "all"})
    for (const float y : run_layer(GetParam(), "layer_norm", {{"over", over}}, {1, 6, 2, 2}, x))
      EXPECT_TRUE(std::isnan(y)) << y << " over " << over;
}

TEST_P(EveryDevice, LayerNormInputGradientIgnoresFreezing) {
  for (const char* over : {"channels", "all"})
    expect_same_input_gradient_where_frozen(GetParam(), "layer_norm", {{"over", over}}, {3, 4, 5, 3});
}

TEST_P(EveryDevice, LayerNormGradients) {
  for (const char* over : {"channels", "all"}) {
    expect_gradients(GetParam(), "layer_norm", {{"over", over}}, {4, 5, 5, 3});
    expect_gradients(GetParam(), "layer_norm", {{"over", over}}, {6, 5});
  }
  expect_gradients(GetParam(), "layer_norm", {}, {2, 40, 9, 8});
  expect_gradients(GetParam(), "layer_norm", {}, {1, 260, 3, 3});
}

TEST(LayerNorm, HasUndecayedScaleAndBias) {
  LayerUnderTest channels({}, "layer_norm", {}, {3, 4, 5}), all({}, "layer_norm", {{"over", "all"}}, {3, 4, 5});
  for (const char* name : {"scale", "bias"}) {
    EXPECT_EQ(channels.parameter(name).shape, (Shape{3})) << name;
    EXPECT_EQ(all.parameter(name).shape, (Shape{3, 4, 5})) << name;
    EXPECT_FALSE(channels.parameter(name).weight_decay) << name;
    EXPECT_FALSE(all.parameter(name).weight_decay) << name;
  }
}

}  // namespace twiddle
