#include <array>

#include "layers/conv/tuned_convolution.h"
#include "tests/support/check_layer.h"

namespace twiddle {

TEST_P(EveryDevice, LinearIsWeightTimesInputPlusBias) {
  LayerUnderTest test(GetParam(), "linear", {{"outputs", "2"}}, {3});
  test.set("weight", {1, 2, 3, 0, -1, 1});
  test.set("bias", {10, 20});
  // 1 + 4 + 9 + 10, -2 + 3 + 20; 0 + 0 + 3 + 10, 0 + 1 + 20
  EXPECT_EQ(test.forward({2, 3}, {1, 2, 3, 0, 0, 1}), (std::vector<float>{24, 21, 13, 21}));
}

TEST_P(EveryDevice, LinearFlattensPlanes) {
  LayerUnderTest test(GetParam(), "linear", {{"outputs", "1"}, {"bias", "false"}}, {2, 1, 2});
  test.set("weight", {1, 10, 100, 1000});
  EXPECT_EQ(test.forward({1, 2, 1, 2}, {1, 2, 3, 4}), (std::vector<float>{4321}));
  EXPECT_EQ(test.layer->parameters().size(), 1u);
}

TEST_P(EveryDevice, LinearGradients) {
  expect_gradients(GetParam(), "linear", {{"outputs", "7"}}, {3, 5});
  expect_gradients(GetParam(), "linear", {{"outputs", "4"}, {"bias", "false"}}, {2, 3, 2, 2});
  expect_gradients(GetParam(), "linear", {{"outputs", "1"}}, {1, 1});
}

// The fused ReLU gives the same result and gradients as two separate layers.
TEST_P(EveryDevice, LinearFusesRelu) {
  const Shape shape{3, 4};
  const std::vector<float> x = whole_numbers(shape, 1), grad_y = whole_numbers({3, 5}, 2);
  for (const std::string with_bias : {"true", "false"}) {
    const auto made = [&] {
      LayerUnderTest test(GetParam(), "linear", {{"outputs", "5"}, {"bias", with_bias}}, {4});
      test.set("weight", whole_numbers({5, 4}, 3));
      if (with_bias == "true") test.set("bias", {1, -2, 0, 3, -1});
      return test;
    };
    LayerUnderTest plain = made(), with_relu = made();
    LayerUnderTest relu(GetParam(), "relu", {}, {5});
    const auto expected = relu.forward_and_backward({3, 5}, plain.forward(shape, x), grad_y);
    const auto gradients = plain.forward_and_backward(shape, x, expected.grad_x);

    ASSERT_TRUE(with_relu.layer->take_over_relu());
    EXPECT_TRUE(with_relu.layer->keeps_output());
    const auto passes = with_relu.forward_and_backward(shape, x, grad_y);
    EXPECT_EQ(passes.y, expected.y);
    EXPECT_EQ(passes.grad_x, gradients.grad_x);
    for (Parameter& parameter : plain.layer->parameters()) {
      const std::string name = parameter.name.substr(parameter.name.find('.') + 1);
      EXPECT_EQ(with_relu.parameter(name).variable.grad().to_vector(*with_relu.ctx.stream),
                parameter.variable.grad().to_vector(*plain.ctx.stream))
          << name;
    }
  }
}

// So large that a GPU multiplies on tensor cores: whole numbers have no error. Either factor may be the smaller one.
TEST_P(EveryDevice, LinearMatchesCpuForLargeMatrices) {
  for (const auto& [batch, inputs, outputs] : {std::array{256, 1024, 512}, std::array{300, 1030, 260},
                                               std::array{128, 1024, 1152}, std::array{64, 1152, 1024}}) {
    const Shape shape{batch, inputs}, output{batch, outputs};
    const auto passes_on = [&](Device device) {
      LayerUnderTest test(device, "linear", {{"outputs", std::to_string(outputs)}}, {inputs});
      test.layer->take_over_relu();
      test.set("weight", whole_numbers({outputs, inputs}, 1));
      test.set("bias", whole_numbers({outputs}, 4));
      auto passes = test.forward_and_backward(shape, whole_numbers(shape, 2), whole_numbers(output, 3));
      for (const char* name : {"weight", "bias"}) {
        const std::vector<float> gradient = test.parameter(name).variable.grad().to_vector(*test.ctx.stream);
        passes.y.insert(passes.y.end(), gradient.begin(), gradient.end());
      }
      return passes;
    };
    const auto here = passes_on(GetParam()), on_cpu = passes_on({});
    EXPECT_EQ(here.y, on_cpu.y);
    EXPECT_EQ(here.grad_x, on_cpu.grad_x);
  }
}

TEST(Linear, IsConvolutionOfOneElementPlanes) {
  LayerUnderTest test({}, "linear", {{"outputs", "4096"}}, {256, 6, 6});
  const TunedConvolution& convolution = *test.layer->convolutions().front();
  EXPECT_EQ(to_string(convolution.problem(128)), "128x9216x1x1 * 4096x9216x1x1");
  EXPECT_EQ(test.parameter("weight").shape, (Shape{4096, 9216}));
  for (const ConvPass pass : every_pass)
    EXPECT_EQ(full_name(*test.convolutions.expected(convolution.problem(128), pass, convolution.engine())), "gemm");
}

TEST(Linear, PassesOptionsToOptimizer) {
  LayerUnderTest test({}, "linear", {{"outputs", "2"}, {"lr", "0.5"}, {"bias_lr", "2"}, {"bias_init", "0.25"}}, {3});
  EXPECT_EQ(test.parameter("weight").learning_rate, 0.5f);
  EXPECT_TRUE(test.parameter("weight").weight_decay);
  EXPECT_EQ(test.parameter("bias").learning_rate, 2);
  EXPECT_FALSE(test.parameter("bias").weight_decay);
  EXPECT_EQ(test.get("bias"), (std::vector<float>{0.25f, 0.25f}));
  EXPECT_EQ(test.layer->flops(), 12);
}

TEST(Linear, ChecksGivenInputCount) {
  EXPECT_EQ(layer_error("linear", {{"outputs", "2"}, {"inputs", "12"}}, {3, 2, 2}), "");
  EXPECT_NE(layer_error("linear", {{"outputs", "2"}, {"inputs", "9216"}}, {256, 5, 5})
                .find("expects 9216 inputs, gets 6400 (256x5x5)"),
            std::string::npos);
}

TEST(Linear, RequiresOutputs) {
  EXPECT_NE(layer_error("linear", {}, {3}).find("outputs"), std::string::npos);
  EXPECT_NE(layer_error("linear", {{"outputs", "0"}}, {3}).find("outputs"), std::string::npos);
}

}  // namespace twiddle
