// All activations far from zero: where squares, cubes and exponentials overflow.
#include <cmath>
#include <limits>

#include "tests/support/check_layer.h"

namespace twiddle {

namespace {

struct Activation {
  const char* kind;
  LayerOptions options;
  float (*far_below)(float x);  // value for x that is far below zero
  float (*far_above)(float x);
  float slope_below, slope_above;
};

std::vector<Activation> all_activations() {
  const auto zero = [](float) { return 0.0f; };
  const auto one = [](float) { return 1.0f; };
  const auto minus_one = [](float) { return -1.0f; };
  const auto same = [](float x) { return x; };
  return {{"relu", {}, zero, same, 0, 1},
          {"leaky_relu", {{"slope", "0.25"}}, [](float x) { return 0.25f * x; }, same, 0.25f, 1},
          {"prelu", {{"init", "0.25"}}, [](float x) { return 0.25f * x; }, same, 0.25f, 1},
          {"sigmoid", {}, zero, one, 0, 0},
          {"tanh", {}, minus_one, one, 0, 0},
          {"silu", {}, zero, same, 0, 1},
          {"hard_swish", {}, zero, same, 0, 1},
          {"gelu", {}, zero, same, 0, 1},
          {"gelu", {{"approximate", "tanh"}}, zero, same, 0, 1}};
}

LayerUnderTest::Passes passes_of(const Device& device, const Activation& activation, float x) {
  LayerUnderTest test(device, activation.kind, activation.options, {1, 1, 2});
  return test.forward_and_backward({1, 1, 1, 2}, {-x, x}, {1, 1});
}

}  // namespace

TEST_P(EveryDevice, ActivationsReachTheirLimits) {
  for (const Activation& activation : all_activations())
    for (const float x : {1e3f, 1e10f, 1e15f, 4e19f, 6e19f, 1e20f, 3e38f}) {
      SCOPED_TRACE(join(activation.kind, " at ", x));
      const auto [y, grad_x] = passes_of(GetParam(), activation, x);
      EXPECT_EQ(y, (std::vector<float>{activation.far_below(-x), activation.far_above(x)}));
      EXPECT_EQ(grad_x, (std::vector<float>{activation.slope_below, activation.slope_above}));
    }
}

// An infinite input results from an earlier overflow: the output is a limit or NaN, and no other value.
TEST_P(EveryDevice, ActivationsMapInfinityToLimitOrNaN) {
  const auto expect = [](float value, float limit) { EXPECT_TRUE(std::isnan(value) || value == limit) << value; };
  for (const Activation& activation : all_activations()) {
    SCOPED_TRACE(activation.kind);
    constexpr float infinity = std::numeric_limits<float>::infinity();
    const auto [y, grad_x] = passes_of(GetParam(), activation, infinity);
    expect(y.at(0), activation.far_below(-infinity));
    expect(y.at(1), activation.far_above(infinity));
    expect(grad_x.at(0), activation.slope_below);
    expect(grad_x.at(1), activation.slope_above);
  }
}

TEST_P(EveryDevice, ActivationsKeepNaN) {
  for (const Activation& activation : all_activations()) {
    LayerUnderTest test(GetParam(), activation.kind, activation.options, {1, 1, 1});
    EXPECT_TRUE(std::isnan(test.forward({1, 1, 1, 1}, {NAN}).at(0))) << activation.kind;
  }
}

}  // namespace twiddle
