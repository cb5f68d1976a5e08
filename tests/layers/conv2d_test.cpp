#include "layers/conv/conv2d.h"

#include <algorithm>
#include <set>

#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "tests/support/check_layer.h"
#include "tests/support/conv_problem.h"

namespace twiddle {

TEST_P(EveryDevice, Conv2dIsCrossCorrelation) {
  LayerUnderTest conv(GetParam(), "conv2d", {{"filters", "1"}, {"kernel", "2"}}, {1, 2, 3});
  conv.set("weight", {1, 10, 100, 1000});
  conv.set("bias", {0.5f});
  expect_close(conv.forward({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), {5421.5f, 6532.5f}, 1e-6f);
}

TEST_P(EveryDevice, Conv2dSupportsRectanglesStridesAndPads) {
  LayerUnderTest conv(
      GetParam(), "conv2d",
      {{"filters", "1"}, {"kernel", "[1, 3]"}, {"stride", "[2, 1]"}, {"pad", "[0, 1]"}, {"bias", "false"}}, {1, 3, 2});
  EXPECT_EQ(conv.layer->output_shape(), (Shape{1, 2, 2}));
  EXPECT_EQ(conv.layer->parameters().size(), 1u);
  conv.set("weight", {1, 10, 100});
  expect_close(conv.forward({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}), {210, 21, 650, 65}, 1e-6f);
}

TEST_P(EveryDevice, Conv2dFusesRelu) {
  for (const bool biased : {true, false}) {
    LayerUnderTest conv(GetParam(), "conv2d", {{"filters", "1"}, {"kernel", "1"}, {"bias", biased ? "true" : "false"}},
                        {1, 1, 3});
    conv.set("weight", {2});
    if (biased) conv.set("bias", {3});
    ASSERT_TRUE(conv.layer->take_over_relu());
    expect_close(conv.forward({1, 1, 1, 3}, {-2, 0, 1}),
                 biased ? std::vector<float>{0, 3, 5} : std::vector<float>{0, 0, 2}, 1e-6f);
  }
}

TEST_P(EveryDevice, Conv2dGradients) {
  expect_gradients(GetParam(), "conv2d", {{"filters", "4"}, {"kernel", "3"}, {"pad", "1"}}, {2, 3, 6, 5});
  expect_gradients(GetParam(), "conv2d", {{"filters", "6"}, {"kernel", "3"}, {"stride", "2"}, {"groups", "2"}},
                   {3, 4, 7, 7});
  expect_gradients(GetParam(), "conv2d", {{"filters", "2"}, {"kernel", "[3, 2]"}, {"dilation", "2"}, {"pad", "[2, 1]"}},
                   {2, 2, 6, 6});
}

TEST_P(EveryDevice, Conv2dGradientsAgreeInEveryEngine) {
  for (const int stride : {1, 2}) {
    ConvProblem problem = conv_problem("2x2x7x7 * 3x2x3x3");
    problem.stride_h = problem.stride_w = stride;
    std::set<std::string> checked;
    for (const auto& engine : make_conv_engines(GetParam())) {
      const auto supports = [&](ConvPass pass) { return engine->supports(problem, pass); };
      if (!std::all_of(std::begin(every_pass), std::end(every_pass), supports)) continue;
      const std::string name(engine->name());
      SCOPED_TRACE(join(name, ", stride ", stride));
      expect_gradients(GetParam(), "conv2d",
                       {{"filters", "3"}, {"kernel", "3"}, {"stride", std::to_string(stride)}, {"engine", name}},
                       {2, 2, 7, 7});
      checked.insert(name);
    }
    EXPECT_TRUE(checked.contains("gemm"));
    EXPECT_TRUE(stride == 2 || GetParam().kind != Device::Kind::cpu || checked.contains("fft"));
    EXPECT_TRUE(stride == 2 || GetParam().kind != Device::Kind::cuda ||
                (checked.contains("cufft") && checked.contains("fbfft")));
  }
}

// Engines that fuse them compute the gradients of ReLU and bias; for the others a separate pass does so before them.
TEST_P(EveryDevice, Conv2dFusedReluGradientsAgreeInEveryEngine) {
  const std::vector<float> x = [] {
    std::vector<float> values;
    for (int i = 0; i < 2 * 3 * 12 * 11; ++i) values.push_back(0.01f * static_cast<float>(i * 37 % 101 - 50));
    return values;
  }();
  const auto gradients = [&](const std::string& engine) {
    LayerUnderTest conv(GetParam(), "conv2d", {{"filters", "4"}, {"kernel", "3"}, {"pad", "1"}, {"engine", engine}},
                        {3, 12, 11});
    EXPECT_TRUE(conv.layer->take_over_relu());
    std::vector<float> weights;
    for (int i = 0; i < 4 * 3 * 9; ++i) weights.push_back(0.1f * static_cast<float>(i * 17 % 19 - 9));
    conv.set("weight", weights);
    conv.set("bias", {0.1f, -0.2f, 0.3f, 0});
    return gradients_of(conv, {2, 3, 12, 11}, x);
  };
  const std::vector<float> expected = gradients("gemm");
  for (const auto& engine : make_conv_engines(GetParam())) {
    const ConvProblem problem = conv_problem("2x3x12x11 * 4x3x3x3 pad 1");
    bool all = true;
    for (const ConvPass pass : every_pass) all = all && engine->supports(problem, pass);
    if (!all) continue;
    SCOPED_TRACE(engine->name());
    expect_close(gradients(std::string(engine->name())), expected, 2e-5f);
  }
}

TEST(Conv2d, DescribesItself) {
  const LayerUnderTest conv({}, "conv2d", {{"filters", "64"}, {"kernel", "11"}, {"stride", "4"}, {"pad", "2"}},
                            {3, 224, 224});
  EXPECT_EQ(conv.layer->output_shape(), (Shape{64, 55, 55}));
  EXPECT_EQ(conv.layer->describe(), "11x11, stride 4, pad 2");
  EXPECT_DOUBLE_EQ(conv.layer->flops(), 2.0 * 64 * 55 * 55 * 3 * 11 * 11);
  const auto& parameters = conv.layer->parameters();
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name, "layer.weight");
  EXPECT_EQ(parameters[0].fan_in, 3 * 11 * 11);
  EXPECT_TRUE(parameters[0].weight_decay);
  EXPECT_FALSE(parameters[1].weight_decay);
}

TEST(Conv2d, ReadsItsOptions) {
  const LayerUnderTest conv({}, "conv2d",
                            {{"filters", "4"},
                             {"kernel", "3"},
                             {"dilation", "2"},
                             {"groups", "2"},
                             {"bias_init", "1"},
                             {"lr", "0.5"},
                             {"bias_lr", "2"},
                             {"engine", "gemm"}},
                            {2, 9, 9});
  EXPECT_EQ(conv.layer->describe(), "3x3, dilation 2, groups 2");
  EXPECT_EQ(conv.layer->parameters()[0].learning_rate, 0.5f);
  EXPECT_EQ(conv.layer->parameters()[1].learning_rate, 2);
  EXPECT_EQ(conv.layer->convolutions().front()->engine(), "gemm");
}

TEST(Conv2d, ReportsInvalidOptions) {
  EXPECT_NE(layer_error("conv2d", {{"filters", "4"}, {"kernel", "11"}}, {3, 8, 8})
                .find("conv2d: kernel 11x11 does not fit the input 8x8 with pad 0: the padded input is 8x8"),
            std::string::npos);
  EXPECT_NE(layer_error("conv2d", {{"filters", "4"}, {"kernel", "3"}, {"groups", "2"}}, {3, 8, 8})
                .find("conv2d: 3 channels cannot be split into 2 equal groups"),
            std::string::npos);
  EXPECT_NE(
      layer_error("conv2d", {{"filters", "4"}, {"kernel", "3"}}, {500}).find("channels x height x width, and gets 500"),
      std::string::npos);
  EXPECT_NE(layer_error("conv2d", {{"filters", "4"}, {"kernel", "3"}, {"engine", "gem"}}, {3, 8, 8})
                .find("did you mean 'gemm'?"),
            std::string::npos);
  EXPECT_NE(layer_error("conv2d", {{"kernel", "3"}}, {3, 8, 8}).find("filters"), std::string::npos);
  EXPECT_NE(layer_error("conv2d", {{"filters", "1048576"}, {"kernel", "1048576"}, {"pad", "1048576"}}, {1 << 20, 8, 8})
                .find("too large"),
            std::string::npos);
}

TEST(Conv2d, RefusesInputOfAnotherShape) {
  LayerUnderTest conv({}, "conv2d", {{"filters", "1"}, {"kernel", "1"}}, {1, 2, 2});
  EXPECT_THROW(conv.forward({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}), Error);
  EXPECT_THROW(conv.forward({1, 4}, {1, 2, 3, 4}), Error);
}

}  // namespace twiddle
