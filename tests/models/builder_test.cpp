#include "models/builder.h"
#include "layers/sequential.h"

#include <gtest/gtest.h>

#include <map>

#include "framework/error.h"
#include "layers/conv/tuned_convolution.h"
#include "layers/softmax_loss.h"
#include "tests/models/built_model.h"
#include "tests/support/every_device.h"

namespace twiddle {
namespace {

std::string error_of(const std::string& input, const std::string& layers) {
  try {
    model_of(input, layers);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "no error";
}

std::int64_t parameters_of(const Model& model) {
  std::int64_t count = 0;
  for (const Parameter* parameter : model.net->parameters())
    if (parameter->trainable) count += count_of(parameter->shape);
  return count;
}

TEST(Builder, PropagatesShapes) {
  const Model model = model_of(
      "[3, 8, 8]", "    - conv2d: {filters: 5, kernel: 3}\n    - relu\n    - flatten\n    - linear: {outputs: 7}\n");
  ASSERT_EQ(model.net->items().size(), 4u);
  EXPECT_EQ(model.net->items()[0].layer->output_shape(), (Shape{5, 6, 6}));
  EXPECT_EQ(model.net->output_shape(), (Shape{7}));
  EXPECT_EQ(parameters_of(model), 3 * 5 * 9 + 5 + 5 * 36 * 7 + 7);
}

TEST(Builder, ComputesInputGradientOnlyAfterParameters) {
  const Model model = model_of("[3, 8, 8]",
                               "    - max_pool: {kernel: 2}\n    - conv2d: {filters: 5, kernel: 1}\n    - relu\n"
                               "    - conv2d: {filters: 2, kernel: 3}\n    - flatten\n");
  const auto wants_it = [&](std::size_t item) {
    return model.net->items()[item].layer->convolutions().front()->problem(1).input_gradient;
  };
  EXPECT_FALSE(wants_it(1));
  EXPECT_TRUE(wants_it(3));
}

// A convolution fuses the ReLU after it; leaky_relu, which is never fused, gives the reference result.
TEST_P(EveryDevice, BuilderFusesReluWithoutChangingGradients) {
  const auto gradients = [](const std::string& activation, bool biased, bool& fused) {
    const std::string bias = biased ? "true" : "false";
    const std::string layers = "    - conv2d: {filters: 5, kernel: 3, bias: " + bias + "}\n    - " + activation +
                               "\n    - linear: {outputs: 3}\n";
    const Model model = model_of("[2, 6, 5]", layers, GetParam());
    Context ctx(GetParam());
    model.net->initialize(ctx);
    std::vector<float> pixels(3 * 2 * 6 * 5);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = RandomSequence{3}.normal(static_cast<std::int64_t>(i));
    const Variable x(Tensor::from(*ctx.stream, {3, 2, 6, 5}, pixels), true);
    const Tensor labels = Tensor::from<std::int32_t>(*ctx.stream, {3}, {0, 2, 1});
    ctx.tape.backward(ctx, softmax_loss(ctx, model.net->forward(ctx, x), labels));
    fused = model.net->items()[1].layer->shares_input();
    std::vector<std::vector<float>> all{x.grad().to_vector(*ctx.stream)};
    for (const Parameter* parameter : model.net->parameters())
      all.push_back(parameter->variable.grad().to_vector(*ctx.stream));
    return all;
  };
  for (const bool biased : {true, false}) {
    bool fused = false, never = false;
    const auto actual = gradients("relu", biased, fused);
    const auto expected = gradients("leaky_relu: {slope: 0}", biased, never);
    EXPECT_TRUE(fused);
    EXPECT_FALSE(never);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
      for (std::size_t k = 0; k < actual[i].size(); ++k)
        EXPECT_NEAR(actual[i][k], expected[i][k], 1e-6) << "tensor " << i << ", element " << k;
  }
}

// The reference for a residual block: one whose ReLU is a layer that is never fused.
TEST_P(EveryDevice, BuilderFusesReluAfterSum) {
  const auto gradients = [](const std::string& activation) {
    const std::string layers =
        "    - conv2d: {filters: 4, kernel: 3, pad: 1}\n"
        "    - residual:\n"
        "        layers: [conv2d: {filters: 6, kernel: 3, stride: 2, pad: 1}, batch_norm]\n"
        "        shortcut: [conv2d: {filters: 6, kernel: 1, stride: 2}]\n"
        "    - " +
        activation +
        "\n"
        "    - parallel: {join: concat, paths: [[], [residual: {layers: [tanh]}]]}\n"
        "    - linear: {outputs: 3}\n";
    const Model model = model_of("[2, 6, 6]", layers, GetParam());
    Context ctx(GetParam());
    model.net->initialize(ctx);
    std::vector<float> pixels(3 * 2 * 6 * 6);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = RandomSequence{3}.normal(static_cast<std::int64_t>(i));
    const Variable x(Tensor::from(*ctx.stream, {3, 2, 6, 6}, pixels), true);
    const Tensor labels = Tensor::from<std::int32_t>(*ctx.stream, {3}, {0, 2, 1});
    ctx.tape.backward(ctx, softmax_loss(ctx, model.net->forward(ctx, x), labels));
    std::vector<std::vector<float>> all{x.grad().to_vector(*ctx.stream)};
    for (const Parameter* parameter : model.net->parameters())
      if (parameter->trainable) all.push_back(parameter->variable.grad().to_vector(*ctx.stream));
    EXPECT_EQ(model.net->items()[2].layer->shares_input(), activation == "relu");
    return all;
  };
  const auto actual = gradients("relu"), expected = gradients("leaky_relu: {slope: 0}");
  ASSERT_EQ(actual.size(), 11u);  // the input's, and weight and bias of four convolutions and layers
  for (std::size_t i = 0; i < actual.size(); ++i)
    for (std::size_t k = 0; k < actual[i].size(); ++k)
      EXPECT_NEAR(actual[i][k], expected[i][k], 1e-6) << "tensor " << i << ", element " << k;
}

TEST(Builder, PrefixesLayersOfPaths) {
  const Model model = model_of("[3, 8, 8]",
                               "    - repeat:\n        times: 2\n        layers:\n"
                               "          - residual: {name: block, layers: [conv2d: {filters: 3, kernel: 1}, relu]}\n"
                               "    - parallel: {paths: [[conv2d: {name: a, filters: 2, kernel: 1}], []]}\n"
                               "    - linear: {outputs: 2}\n");
  std::vector<std::string> names;
  for (const Sequential::Item* item : model.net->all_items()) names.push_back(item->layer->name());
  EXPECT_EQ(names, (std::vector<std::string>{"block1.conv1", "block1.relu1", "block1", "block2.conv1", "block2.relu1",
                                             "block2", "parallel1.a", "parallel1", "fc1"}));
  EXPECT_EQ(model.net->items()[2].layer->output_shape(), (Shape{5, 8, 8}));
  EXPECT_EQ(model.net->parameters().front()->name, "block1.conv1.weight");
  const auto wants_input_gradient = [&](std::size_t item) {
    return model.net->all_items()[item]->layer->convolutions().front()->problem(1).input_gradient;
  };
  EXPECT_FALSE(wants_input_gradient(0));
  EXPECT_TRUE(wants_input_gradient(3));
}

TEST(Builder, ReportsInvalidPaths) {
  const std::string shapes = error_of("[3, 8, 8]",
                                      "    - relu\n    - residual:\n        name: block\n"
                                      "        layers: [conv2d: {filters: 4, kernel: 3, pad: 1}]\n");
  EXPECT_NE(shapes.find("net.yaml:6:7: error: layer 'block': paths joined by 'add' must give the same shape: "
                        "'layers' gives 4x8x8, 'its input' gives 3x8x8"),
            std::string::npos)
      << shapes;
  EXPECT_NE(shapes.find("its input is 3x8x8 from 'relu1'"), std::string::npos) << shapes;
  const std::map<std::string, std::string> wrong{
      {"residual", "'residual' needs 'layers', a list"},
      {"residual: {shortcut: [relu]}", "'residual' needs 'layers', a list"},
      {"residual: {layers: [relu], shortcut: relu}", "'shortcut' must be a list of layers"},
      {"residual: {layers: [relu], join: add}", "unknown key 'join' in 'residual'"},
      {"residual: {layers: [rellu]}", "did you mean 'relu'?"},
      {"parallel: {paths: [[relu]]}", "a list of two or more lists of layers"},
      {"parallel: {paths: [[relu], tanh]}", "a path must be a list of layers"},
      {"parallel: {join: sum, paths: [[relu], []]}", "'join' must be one of"},
      {"parallel: {paths: [[max_pool: {kernel: 9}], []]}", "layer 'parallel1.pool1'"},
      {"residul: {layers: [relu]}", "did you mean 'residual'?"},
  };
  for (const auto& [layer, complaint] : wrong) {
    const std::string text = error_of("[3, 8, 8]", "    - " + layer + "\n    - linear: {outputs: 2}\n");
    EXPECT_NE(text.find(complaint), std::string::npos) << layer << ": " << text;
    EXPECT_NE(text.find("1 error"), std::string::npos) << text;
  }
}

// The parameter counts of the published networks (biases included).
TEST(Builder, BuildsTheShippedNetworks) {
  const std::map<std::string, std::int64_t> expected = {{"lenet", 431080},
                                                        {"alexnet", 61100840},
                                                        {"vgg_a", 132863336},
                                                        {"vgg_e", 143667240},
                                                        {"alexnet_two_towers", 60965224},
                                                        {"overfeat_fast", 145920872},
                                                        {"resnet18", 11689512},
                                                        {"resnet50", 25557032},
                                                        {"googlenet", 6624904},
                                                        {"convnext_t", 28589128},
                                                        {"replknet31b", 79864168}};
  for (const auto& [name, count] : expected) {
    const Model model = load_experiment("models/" + name + ".yaml").model;
    EXPECT_EQ(parameters_of(model), count) << name;
  }
}

TEST(Builder, ReportsAllErrorsTogether) {
  const std::string text = error_of("[1, 8, 8]",
                                    "    - conv2d: {filters: 4, kernal: 3}\n"
                                    "    - rellu\n"
                                    "    - dropout: {rate: 2}\n");
  EXPECT_NE(text.find("unknown key 'kernal'"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'relu'"), std::string::npos) << text;
  EXPECT_NE(text.find("'rate'"), std::string::npos) << text;
}

TEST(Builder, NamesLayerWithImpossibleShape) {
  const std::string text =
      error_of("[1, 8, 8]", "    - max_pool: {kernel: 4}\n    - conv2d: {name: big, filters: 4, kernel: 5}\n");
  EXPECT_NE(text.find("net.yaml:6:"), std::string::npos) << text;
  EXPECT_NE(text.find("'big'"), std::string::npos) << text;
  EXPECT_NE(text.find("5x5"), std::string::npos) << text;
}

TEST(Builder, ReportsOnlyFirstShapeError) {
  const std::string text = error_of(
      "[1, 4, 4]",
      "    - conv2d: {filters: 4, kernel: 5}\n    - conv2d: {filters: 4, kernel: 5}\n    - max_pool: {kernel: 9}\n");
  EXPECT_NE(text.find("1 error"), std::string::npos) << text;
}

}  // namespace
}  // namespace twiddle
