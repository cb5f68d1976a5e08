#include "models/builder.h"

#include <gtest/gtest.h>

#include <map>

#include "framework/error.h"
#include "models/config.h"

namespace twiddle {
namespace {

Config config_of(const std::string& input, const std::string& layers) {
  return load_config_text("version: 1\nmodel:\n  input: " + input + "\n  layers:\n" + layers, "net.yaml");
}

std::string error_of(const std::string& input, const std::string& layers) {
  try {
    build_model(config_of(input, layers), {});
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return "no error";
}

std::int64_t parameters_of(const Model& model) {
  std::int64_t count = 0;
  for (const Parameter* parameter : model.net->parameters()) count += count_of(parameter->shape);
  return count;
}

TEST(Builder, PassesShapesOn) {
  const Model model = build_model(
      config_of("[3, 8, 8]",
                "    - conv2d: {filters: 5, kernel: 3}\n    - relu\n    - flatten\n    - linear: {outputs: 7}\n"),
      {});
  ASSERT_EQ(model.net->items().size(), 4u);
  EXPECT_EQ(model.net->items()[0].layer->output_shape(), (Shape{5, 6, 6}));
  EXPECT_EQ(model.net->output_shape(), (Shape{7}));
  EXPECT_EQ(parameters_of(model), 3 * 5 * 9 + 5 + 5 * 36 * 7 + 7);
}

// The parameter counts of the published networks (biases included).
TEST(Builder, BuildsTheShippedNetworks) {
  const std::map<std::string, std::int64_t> expected = {{"lenet", 431080},
                                                        {"alexnet", 61100840},
                                                        {"vgg_a", 132863336},
                                                        {"vgg_e", 143667240},
                                                        {"alexnet_two_towers", 60965224},
                                                        {"overfeat_fast", 145920872}};
  for (const auto& [name, count] : expected) {
    const Model model = build_model(load_config("models/" + name + ".yaml"), {});
    EXPECT_EQ(parameters_of(model), count) << name;
  }
}

TEST(Builder, TellsEveryErrorInOneGo) {
  const std::string text = error_of("[1, 8, 8]",
                                    "    - conv2d: {filters: 4, kernal: 3}\n"
                                    "    - rellu\n"
                                    "    - dropout: {rate: 2}\n");
  EXPECT_NE(text.find("unknown key 'kernal'"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean 'relu'"), std::string::npos) << text;
  EXPECT_NE(text.find("'rate'"), std::string::npos) << text;
}

TEST(Builder, SaysWhichLayerAnImpossibleShapeReaches) {
  const std::string text =
      error_of("[1, 8, 8]", "    - max_pool: {kernel: 4}\n    - conv2d: {name: big, filters: 4, kernel: 5}\n");
  EXPECT_NE(text.find("net.yaml:6:"), std::string::npos) << text;
  EXPECT_NE(text.find("'big'"), std::string::npos) << text;
  EXPECT_NE(text.find("5x5"), std::string::npos) << text;
}

TEST(Builder, ReportsOneShapeErrorNotItsEchoes) {
  const std::string text = error_of(
      "[1, 4, 4]",
      "    - conv2d: {filters: 4, kernel: 5}\n    - conv2d: {filters: 4, kernel: 5}\n    - max_pool: {kernel: 9}\n");
  EXPECT_NE(text.find("1 error"), std::string::npos) << text;
}

TEST(MemoryPlan, CountsByKind) {
  const Model model = build_model(config_of("[1, 8, 8]", "    - linear: {outputs: 10}\n"), {});
  const MemoryPlan plan = plan_memory(model, 4, 2);
  EXPECT_EQ(plan.weights, 650u * 4);
  EXPECT_EQ(plan.gradients, 650u * 4);
  EXPECT_EQ(plan.optimizer, 2u * 650 * 4);
  EXPECT_EQ(plan.workspace, 0u);
  EXPECT_GE(plan.activations, 4u * 10 * 4);
}

TEST(MemoryPlan, AnActivationThatNobodyKeepsIsNotCountedTwice) {
  const std::string convolution = "    - conv2d: {filters: 64, kernel: 3, pad: 1}\n";
  const Model plain = build_model(config_of("[64, 32, 32]", convolution), {});
  const Model with_relu = build_model(config_of("[64, 32, 32]", convolution + "    - relu\n"), {});
  // relu keeps its own output; the convolution's goes back to the pool.
  EXPECT_LE(plan_memory(with_relu, 1, 0).activations, plan_memory(plain, 1, 0).activations + 64 * 32 * 32 * 4);
}

}  // namespace
}  // namespace twiddle
