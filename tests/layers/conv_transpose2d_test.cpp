#include "layers/conv/conv_transpose2d.h"

#include <algorithm>
#include <set>

#include "framework/error.h"
#include "layers/conv/engines/engines.h"
#include "tests/support/check_layer.h"
#include "tests/support/noise.h"

namespace twiddle {

namespace {

// By definition, in double: adds each input, times its kernel, to the output. Without bias.
std::vector<float> scattered(const ConvProblem& p, int height, int width, const std::vector<float>& x,
                             const std::vector<float>& w) {
  const int each = p.channels / p.groups;
  std::vector<double> y(static_cast<std::size_t>(count_of(p.input_shape())));
  for (int image = 0; image < p.batch; ++image)
    for (int c = 0; c < p.filters; ++c)
      for (int f = 0; f < each; ++f)
        for (int i = 0; i < height * width * p.kernel_h * p.kernel_w; ++i) {
          const int tap_w = i % p.kernel_w, tap_h = i / p.kernel_w % p.kernel_h, pixel = i / p.kernel_w / p.kernel_h;
          const int h = pixel / width * p.stride_h - p.pad_h + tap_h * p.dilation;
          const int v = pixel % width * p.stride_w - p.pad_w + tap_w * p.dilation;
          if (h < 0 || h >= p.height || v < 0 || v >= p.width) continue;
          const int filter = c / (p.filters / p.groups) * each + f;
          y[static_cast<std::size_t>(((image * p.channels + filter) * p.height + h) * p.width + v)] +=
              double(x[static_cast<std::size_t>((image * p.filters + c) * height * width + pixel)]) *
              w[static_cast<std::size_t>(((c * each + f) * p.kernel_h + tap_h) * p.kernel_w + tap_w)];
        }
  return std::vector<float>(y.begin(), y.end());
}

const std::vector<LayerOptions>& many_kinds() {
  static const std::vector<LayerOptions> kinds{
      {{"filters", "6"}, {"kernel", "3"}},
      {{"filters", "6"}, {"kernel", "2"}, {"stride", "2"}},
      {{"filters", "2"}, {"kernel", "3"}, {"stride", "2"}, {"pad", "1"}, {"output_pad", "1"}},
      {{"filters", "4"}, {"kernel", "3"}, {"dilation", "2"}, {"pad", "1"}, {"groups", "2"}},
      {{"filters", "4"}, {"kernel", "4"}, {"stride", "2"}, {"pad", "1"}, {"groups", "4"}},
      {{"filters", "2"}, {"kernel", "[1, 5]"}, {"stride", "[3, 2]"}, {"pad", "[0, 2]"}, {"output_pad", "[2, 0]"}},
      {{"filters", "2"}, {"kernel", "3"}, {"dilation", "2"}, {"pad", "1"}, {"output_pad", "1"}},
      {{"filters", "2"}, {"kernel", "3"}, {"stride", "2"}, {"dilation", "4"}, {"pad", "3"}, {"output_pad", "3"}},
      {{"filters", "2"}, {"kernel", "[3, 1]"}, {"stride", "[1, 2]"}, {"dilation", "3"}, {"output_pad", "[2, 1]"}}};
  return kinds;
}

}  // namespace

TEST_P(EveryDevice, ConvTranspose2dScattersInputByKernel) {
  LayerUnderTest layer(GetParam(), "conv_transpose2d", {{"filters", "1"}, {"kernel", "2"}, {"stride", "2"}}, {1, 1, 2});
  layer.set("weight", {1, 10, 100, 1000});
  layer.set("bias", {0.5f});
  expect_close(layer.forward({1, 1, 1, 2}, {1, 2}), {1.5f, 10.5f, 2.5f, 20.5f, 100.5f, 1000.5f, 200.5f, 2000.5f},
               1e-6f);
}

TEST_P(EveryDevice, ConvTranspose2dMatchesDefinition) {
  for (const LayerOptions& options : many_kinds()) {
    LayerUnderTest layer(GetParam(), "conv_transpose2d", options, {4, 6, 5});
    const ConvProblem problem = layer.layer->convolutions().front()->problem(3);
    ASSERT_EQ(problem.input_shape(), layer.output_shape(3));
    const std::vector<float> x = noise(3 * 4 * 6 * 5, 1), w = noise(count_of(problem.weight_shape()), 2);
    layer.set("weight", w);
    expect_close(layer.forward({3, 4, 6, 5}, x), scattered(problem, 6, 5, x, w), 1e-5f);
  }
}

TEST_P(EveryDevice, ConvTranspose2dGradients) {
  for (const LayerOptions& options : many_kinds())
    expect_gradients(GetParam(), "conv_transpose2d", options, {2, 4, 4, 3});
}

TEST_P(EveryDevice, ConvTranspose2dRunsWithEveryEngine) {
  for (const char* stride : {"1", "2"}) {
    LayerOptions options{{"filters", "2"}, {"kernel", "3"}, {"stride", stride}};
    const ConvProblem problem =
        LayerUnderTest(GetParam(), "conv_transpose2d", options, {3, 5, 5}).layer->convolutions().front()->problem(2);
    std::set<std::string> checked;
    for (const auto& engine : make_conv_engines(GetParam())) {
      const auto supports = [&](ConvPass pass) { return engine->supports(problem, pass); };
      if (!std::all_of(std::begin(every_pass), std::end(every_pass), supports)) continue;
      const std::string name(engine->name());
      SCOPED_TRACE(join(name, ", stride ", stride));
      LayerOptions named = options;
      named.emplace_back("engine", name);
      expect_gradients(GetParam(), "conv_transpose2d", named, {2, 3, 5, 5});
      checked.insert(name);
    }
    EXPECT_TRUE(checked.contains("gemm"));
    EXPECT_TRUE(options[2].second == "2" || GetParam().kind != Device::Kind::cpu || checked.contains("fft"));
  }
}

TEST_P(EveryDevice, ConvTranspose2dFusesRelu) {
  for (const bool biased : {true, false}) {
    LayerUnderTest layer(GetParam(), "conv_transpose2d",
                         {{"filters", "1"}, {"kernel", "1"}, {"bias", biased ? "true" : "false"}}, {1, 1, 3});
    layer.set("weight", {2});
    if (biased) layer.set("bias", {3});
    ASSERT_TRUE(layer.layer->take_over_relu());
    const LayerUnderTest::Passes passes = layer.forward_and_backward({1, 1, 1, 3}, {-2, 0, 1}, {1, 10, 100});
    expect_close(passes.y, biased ? std::vector<float>{0, 3, 5} : std::vector<float>{0, 0, 2}, 1e-6f);
    expect_close(passes.grad_x, biased ? std::vector<float>{0, 20, 200} : std::vector<float>{0, 0, 200}, 1e-6f);
  }
}

TEST(ConvTranspose2d, DescribesItself) {
  const LayerUnderTest layer(
      {}, "conv_transpose2d",
      {{"filters", "6"}, {"kernel", "3"}, {"stride", "2"}, {"pad", "1"}, {"output_pad", "1"}, {"groups", "2"}},
      {4, 7, 7});
  EXPECT_EQ(layer.layer->output_shape(), (Shape{6, 14, 14}));
  EXPECT_EQ(layer.layer->describe(), "3x3, stride 2, pad 1, groups 2, output pad 1");
  EXPECT_EQ(layer.layer->parameters()[0].shape, (Shape{4, 3, 3, 3}));
  EXPECT_DOUBLE_EQ(layer.layer->flops(), 2.0 * 4 * 7 * 7 * 3 * 3 * 3);
}

TEST(ConvTranspose2d, OutputSizeMatchesFormula) {
  constexpr int in = 5;
  for (int kernel = 1; kernel <= 4; ++kernel)
    for (int stride = 1; stride <= 3; ++stride)
      for (int pad = 0; pad <= 2; ++pad)
        for (int dilation = 1; dilation <= 2; ++dilation)
          for (int more = 0; more < stride; ++more) {
            const int size = (in - 1) * stride - 2 * pad + dilation * (kernel - 1) + more + 1;
            const LayerOptions options{{"filters", "2"},
                                       {"kernel", std::to_string(kernel)},
                                       {"stride", std::to_string(stride)},
                                       {"pad", std::to_string(pad)},
                                       {"dilation", std::to_string(dilation)},
                                       {"output_pad", std::to_string(more)}};
            EXPECT_EQ(LayerUnderTest({}, "conv_transpose2d", options, {1, in, in}).layer->output_shape(),
                      (Shape{2, size, size}))
                << kernel << " " << stride << " " << pad << " " << dilation << " " << more;
          }
}

// The layer uses the convolution's passes in other roles.
TEST(ConvTranspose2d, SwapsForwardAndBackwardInput) {
  ConvTuner tuner(make_conv_engines(Device{}), ConvPolicy{});
  Diagnostics diagnostics;
  Params params(options_node({{"filters", "2"}, {"kernel", "3"}}), "conv_transpose2d", diagnostics);
  ConvTranspose2d layer(Site{"up", {3, 5, 5}, tuner, false}, params);
  const TunedConvolution& convolution = *layer.convolutions().front();
  EXPECT_EQ(convolution.pass_for(ConvPass::forward), ConvPass::backward_input);
  EXPECT_EQ(convolution.pass_for(ConvPass::backward_input), ConvPass::forward);
  EXPECT_EQ(convolution.pass_for(ConvPass::backward_weight), ConvPass::backward_weight);
  EXPECT_TRUE(convolution.in_training(ConvPass::forward));
  EXPECT_FALSE(convolution.in_training(ConvPass::backward_input));  // nothing before it is trained
  EXPECT_TRUE(convolution.problem(1).in_training(ConvPass::backward_input));
}

TEST(ConvTranspose2d, ReportsInvalidOptions) {
  const auto error = [](const LayerOptions& options, const Shape& image) {
    return layer_error("conv_transpose2d", options, image);
  };
  EXPECT_NE(error({{"filters", "4"}, {"kernel", "3"}, {"groups", "2"}}, {3, 8, 8})
                .find("conv_transpose2d: 3 channels cannot be split into 2 equal groups"),
            std::string::npos);
  EXPECT_NE(error({{"filters", "3"}, {"kernel", "3"}, {"groups", "2"}}, {4, 8, 8}).find("3 filters"),
            std::string::npos);
  EXPECT_NE(error({{"filters", "4"}, {"kernel", "3"}, {"output_pad", "1"}}, {3, 8, 8})
                .find("'output_pad' 1 must be smaller than the stride 1 or the dilation 1"),
            std::string::npos);
  EXPECT_NE(error({{"filters", "4"}, {"kernel", "3"}, {"pad", "5"}}, {3, 8, 8})
                .find("nothing is left of the input 8x8 with kernel 3x3, pad 5"),
            std::string::npos);
  EXPECT_NE(error({{"filters", "4"}, {"kernel", "3"}}, {500}).find("channels x height x width, and gets 500"),
            std::string::npos);
  EXPECT_NE(error({{"filters", "4"}, {"kernel", "3"}, {"stride", "1048576"}}, {3, 1 << 20, 8}).find("height is"),
            std::string::npos);
}

TEST(ConvTranspose2d, RefusesInputOfAnotherShape) {
  LayerUnderTest layer({}, "conv_transpose2d", {{"filters", "1"}, {"kernel", "1"}}, {1, 2, 2});
  EXPECT_THROW(layer.forward({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6}), Error);
  EXPECT_THROW(layer.forward({1, 4}, {1, 2, 3, 4}), Error);
}

}  // namespace twiddle
