#include "models/config/parameter_patterns.h"
#include "layers/sequential.h"

#include "layers/conv/tuned_convolution.h"
#include "models/memory_plan.h"
#include "tests/models/config_text.h"

namespace twiddle {

namespace {

const std::string branched = R"(version: 1
device: cpu
model:
  input: [2, 8, 8]
  layers:
    - conv2d: {name: stem, filters: 4, kernel: 3, pad: 1}
    - batch_norm
    - residual:
        name: block
        layers: [conv2d: {filters: 4, kernel: 3, pad: 1}, batch_norm, relu]
        shortcut: [conv2d: {filters: 4, kernel: 1}]
    - linear: {name: head, outputs: 3}
)";

Experiment experiment_with(const std::string& train) {
  return load_experiment_text(branched + "train: " + train + "\n", "a.yaml");
}

std::vector<std::string> trained_in(const std::string& train) {
  const Experiment experiment = experiment_with(train);
  std::vector<std::string> names;
  for (const Parameter* parameter : experiment.model.net->parameters())
    if (parameter->trainable) names.push_back(parameter->name);
  return names;
}

bool matches(const std::string& pattern, const std::string& parameter) {
  return ParameterPattern{pattern, {}}.matches(parameter);
}

}  // namespace

TEST(ParameterPatterns, MatchParametersAndEnclosingLayers) {
  for (const char* pattern : {"stage1.conv1.weight", "stage1.conv1", "stage1", "stage*", "*", "*.weight", "st?ge1.*",
                              "*conv1*", "stage1.conv1.weight*", "*1"})
    EXPECT_TRUE(matches(pattern, "stage1.conv1.weight")) << pattern;
  for (const char* pattern : {"", "stage", "stage1.", "conv1", "weight", "*.bias", "stage1.conv?.", "stage1.conv1.w"})
    EXPECT_FALSE(matches(pattern, "stage1.conv1.weight")) << pattern;
  EXPECT_FALSE(matches("conv1", "conv10.weight"));
}

TEST(ParameterPatterns, FreezeLayersInPaths) {
  EXPECT_EQ(trained_in("{freeze: [stem, bn1, block]}"), (std::vector<std::string>{"head.weight", "head.bias"}));
  EXPECT_EQ(trained_in("{freeze: ['*.weight', '*bn?']}"),
            (std::vector<std::string>{"stem.bias", "block.conv1.bias", "block.conv2.bias", "head.bias"}));
}

TEST(ParameterPatterns, FreezeSkipsGradientsBelowTrainedLayer) {
  const auto problems = [](const std::string& train) {
    std::vector<ConvProblem> all;
    const Experiment experiment = experiment_with(train);
    for (const TunedConvolution* convolution : experiment.model.net->convolutions())
      all.push_back(convolution->problem(1));
    return all;
  };
  const std::vector<ConvProblem> frozen = problems("{freeze: [stem, bn1, 'block.conv1']}");
  ASSERT_EQ(frozen.size(), 4u);  // three convolutions and the linear layer
  EXPECT_FALSE(frozen[0].in_training(ConvPass::backward_weight));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_FALSE(frozen[i].in_training(ConvPass::backward_input));
  EXPECT_TRUE(frozen[3].in_training(ConvPass::backward_input));
  EXPECT_FALSE(frozen[1].in_training(ConvPass::backward_weight));
  EXPECT_TRUE(frozen[2].in_training(ConvPass::backward_weight)) << "the shortcut's";
  EXPECT_TRUE(problems("{}")[1].in_training(ConvPass::backward_input));
}

TEST(ParameterPatterns, FreezeReducesPlannedMemory) {
  // An engine without scratch memory, whose peak may be at another layer than that of the activations.
  const std::string rest = "\nconvolution: {engine: direct}";
  const Experiment frozen = experiment_with("{freeze: [stem, bn1]}" + rest), whole = experiment_with("{}" + rest);
  const MemoryPlan less = plan_memory(frozen.model, {8, 1}), more = plan_memory(whole.model, {8, 1});
  EXPECT_EQ(less.weights, more.weights);
  EXPECT_EQ(more.gradients - less.gradients, 4u * (4 * 2 * 9 + 4 + 4 + 4));
  EXPECT_LT(less.activations, more.activations);
}

TEST(ParameterPatterns, UseLastMatchingFactor) {
  const Experiment experiment = experiment_with("{learning_rates: {'*': 0.1, block: 0.5, '*.bias': 2}}");
  for (const Parameter* parameter : experiment.model.net->parameters()) {
    const bool bias = parameter->name.ends_with(".bias"), block = parameter->name.starts_with("block.");
    EXPECT_EQ(parameter->learning_rate, bias ? 2.0f : block ? 0.5f : 0.1f) << parameter->name;
  }
}

TEST(ParameterPatterns, StayInConfigOfRun) {
  const Experiment experiment = experiment_with("{freeze: 'st*', learning_rates: {'*.bias': 2}}");
  const Experiment again = load_experiment_text(to_yaml(experiment.config.tree), "again.yaml");
  ASSERT_EQ(again.config.train.freeze.size(), 1u);
  EXPECT_EQ(again.config.train.freeze[0].text, "st*");
  ASSERT_EQ(again.config.train.learning_rates.size(), 1u);
  EXPECT_EQ(again.config.train.learning_rates[0].text, "*.bias");
  EXPECT_EQ(again.config.train.learning_rates[0].factor, 2);
}

TEST(ParameterPatterns, FailIfNothingMatches) {
  const std::string error =
      complaint_about(branched + "train:\n  freeze: [stem, blok]\n  learning_rates: {hed: 3, xyzzyx*: 1}\n");
  EXPECT_TRUE(holds(error, "a.yaml:14:18: error: 'blok' of 'freeze' matches no parameter of the model")) << error;
  EXPECT_TRUE(holds(error, "did you mean 'block'?")) << error;
  EXPECT_TRUE(holds(error, "a.yaml:15:20: error: 'hed' of 'learning_rates'")) << error;
  EXPECT_TRUE(holds(error, "did you mean 'head'?")) << error;
  EXPECT_TRUE(holds(error, "parameters have names such as 'stem.weight'")) << error;
  EXPECT_TRUE(
      holds(complaint_about(branched + "train: {learning_rates: {head: -1}}\n"), "'head' must be a number from 0 to "));
  EXPECT_TRUE(holds(complaint_about(branched + "train: {learning_rates: 3}\n"), "must be a mapping"));
}

TEST(ParameterPatterns, FailIfNothingIsTrained) {
  EXPECT_TRUE(holds(complaint_about(branched + "train: {freeze: '*'}\n"), "'freeze' leaves nothing to train"));
}

}  // namespace twiddle
