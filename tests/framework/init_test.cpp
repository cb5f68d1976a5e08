#include "framework/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "framework/context.h"
#include "framework/parameter.h"

namespace twiddle {
namespace {

std::vector<float> drawn(Initializer initializer, std::int64_t fan_in, std::int64_t fan_out) {
  std::vector<float> values(100000);
  fill_initial(values, initializer, fan_in, fan_out, {5, 0});
  return values;
}

double deviation(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += static_cast<double>(value) * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

TEST(Initializer, ConstantFills) {
  const std::vector<float> values = drawn({Initializer::Kind::constant, 0.25}, 1, 1);
  EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](float value) { return value == 0.25f; }));
}

TEST(Initializer, GaussianHasItsDeviation) {
  EXPECT_NEAR(deviation(drawn({Initializer::Kind::gaussian, 0.01}, 1, 1)), 0.01, 0.0002);
}

TEST(Initializer, HeDependsOnTheFanIn) {
  EXPECT_NEAR(deviation(drawn({Initializer::Kind::he, 0}, 50, 7)), std::sqrt(2.0 / 50), 0.003);
}

TEST(Initializer, XavierIsUniformWithinItsLimit) {
  const std::vector<float> values = drawn({Initializer::Kind::xavier, 0}, 20, 40);
  const float limit = std::sqrt(6.0f / 60);
  EXPECT_NEAR(*std::max_element(values.begin(), values.end()), limit, 1e-3);
  EXPECT_NEAR(*std::min_element(values.begin(), values.end()), -limit, 1e-3);
  EXPECT_NEAR(deviation(values), limit / std::sqrt(3.0), 0.003);
}

TEST(Parameter, InitialValuesFollowNameAndSeed) {
  Context ctx;
  const auto started = [&](const std::string& name, std::uint64_t seed) {
    Parameter parameter{name, {8}, {Initializer::Kind::he, 0}};
    initialize(*ctx.stream, parameter, seed);
    return parameter.variable.value().to_vector(*ctx.stream);
  };
  EXPECT_EQ(started("conv1.weight", 1), started("conv1.weight", 1));
  EXPECT_NE(started("conv1.weight", 1), started("conv2.weight", 1));
  EXPECT_NE(started("conv1.weight", 1), started("conv1.weight", 2));
}

}  // namespace
}  // namespace twiddle
