#include "models/checkpoints/merge_layers.h"
#include "framework/context.h"
#include "framework/parameter.h"
#include "framework/random.h"
#include "layers/sequential.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/checkpoints/weights.h"
#include "models/config/experiment.h"

namespace twiddle {

namespace {

constexpr const char* nets_head = "version: 1\ndevice: cpu\nmodel:\n  input: [4, 9, 9]\n  layers:\n";

struct Network {
  Experiment experiment;
  Context ctx;

  explicit Network(const std::string& yaml) : experiment(load_experiment_text(yaml, "net.yaml")) {
    net().initialize(ctx);
  }
  const Sequential& net() const { return *experiment.model.net; }

  // Running averages and scales as after some training: nothing is 0 or 1.
  void draw_values() {
    std::int64_t next = 0;
    for (Parameter* parameter : net().parameters()) {
      std::vector<float> values(static_cast<std::size_t>(count_of(parameter->shape)));
      for (float& value : values) value = 0.3f * RandomSequence{7}.normal(next++);
      if (parameter->name.ends_with("running_var"))
        for (float& value : values) value = 0.5f + std::fabs(value);
      parameter->variable.value() = Tensor::from(*ctx.stream, parameter->shape, values);
    }
  }

  std::map<std::string, HostArray> values() {
    std::map<std::string, HostArray> arrays;
    for (const Parameter* parameter : net().parameters())
      arrays[parameter->name] = to_host(*ctx.stream, parameter->variable.value());
    return arrays;
  }

  std::vector<float> outputs() {
    const EvaluationMode evaluating(ctx);
    std::vector<float> pixels(2 * 4 * 9 * 9);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = RandomSequence{3}.normal(static_cast<std::int64_t>(i));
    return net().forward(ctx, Variable(Tensor::from(*ctx.stream, {2, 4, 9, 9}, pixels))).value().to_vector(*ctx.stream);
  }
};

std::vector<std::string> kinds_of(const Sequential& net) {
  std::vector<std::string> kinds;
  for (const Sequential::Item* item : net.all_items()) kinds.push_back(item->kind);
  return kinds;
}

// Merges, compares the outputs with those before, and returns the kinds of the remaining layers.
std::vector<std::string> kinds_after_merging(const std::string& layers, int norms, int sums) {
  Network whole(nets_head + layers + "    - linear: {outputs: 3}\n");
  whole.draw_values();
  const ConfigNode& tree = whole.experiment.config.tree;
  const MergedLayers merged = merge_layers(*tree.find("model")->find("layers"), whole.values());
  EXPECT_EQ(merged.norms, norms);
  EXPECT_EQ(merged.sums, sums);
  Network small(to_yaml(with_layers(tree, merged.layers)));
  put_values(small.net(), fitting_values(small.ctx, small.net(), source_of({merged.weights, {}}), "merged"));
  const std::vector<float> expected = whole.outputs(), actual = small.outputs();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-5 * (1 + std::fabs(expected[i])));
  return kinds_of(small.net());
}

}  // namespace

TEST(MergeLayers, FoldsBatchNormIntoConvolution) {
  EXPECT_EQ(
      kinds_after_merging("    - batch_norm\n"
                          "    - conv2d: {filters: 6, kernel: 3, pad: 1, bias: false}\n    - batch_norm\n    - relu\n"
                          "    - conv2d: {filters: 4, kernel: 3, stride: 2}\n    - batch_norm: {epsilon: 0.1}\n",
                          2, 0),
      (std::vector<std::string>{"batch_norm", "conv2d", "relu", "conv2d", "linear"}));
}

// RepLKNet's block, with kernels that are no squares.
TEST(MergeLayers, MergesSumOfConvolutions) {
  EXPECT_EQ(kinds_after_merging(
                "    - residual:\n        layers:\n          - batch_norm\n          - parallel:\n"
                "              join: add\n              paths:\n"
                "                - [conv2d: {filters: 4, kernel: [7, 5], pad: [3, 2], groups: 4, bias: false}, "
                "batch_norm]\n"
                "                - [conv2d: {filters: 4, kernel: 3, pad: 1, groups: 4, bias: false}, batch_norm]\n"
                "                - [conv2d: {filters: 4, kernel: 1, groups: 4}]\n"
                "          - relu\n",
                2, 1),
            (std::vector<std::string>{"batch_norm", "conv2d", "relu", "residual", "linear"}));
}

TEST(MergeLayers, KeepsSumsThatCannotMerge) {
  for (const std::string paths : {
           "[[conv2d: {filters: 4, kernel: 3, pad: 1}], []]",
           "[[conv2d: {filters: 4, kernel: 3, pad: 1}], [conv2d: {filters: 4, kernel: 1}, relu]]",
           "[[conv2d: {filters: 4, kernel: 3, pad: 1}], [conv2d: {filters: 4, kernel: 1, groups: 2}]]",
           "[[conv2d: {filters: 4, kernel: 5, pad: 2}], [conv2d: {filters: 4, kernel: 3, pad: 2, dilation: 2}]]",
           "[[conv2d: {filters: 4, kernel: 3, pad: 1}], [conv2d: {filters: 4, kernel: 2, pad: 1}, max_pool: {kernel: "
           "2, "
           "stride: 1}]]",
       }) {
    const std::vector<std::string> kinds =
        kinds_after_merging("    - parallel: {join: add, paths: " + paths + "}\n", 0, 0);
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), "parallel"), 1) << paths;
  }
}

TEST(MergeLayers, AcceptsNamePrefixOfMergedLayer) {
  EXPECT_EQ(kinds_after_merging("    - conv2d: {filters: 4, kernel: 3}\n    - batch_norm: {name: stem}\n"
                                "    - conv2d: {name: stem.conv, filters: 4, kernel: 3}\n",
                                1, 0),
            (std::vector<std::string>{"conv2d", "conv2d", "linear"}));
}

TEST(MergeLayers, DropsPatternsOfMergedLayers) {
  Network net(std::string(nets_head) +
              "    - conv2d: {filters: 2, kernel: 1}\n    - batch_norm\n    - linear: {outputs: 3}\n"
              "train: {freeze: [bn1]}\n");
  const ConfigNode& tree = net.experiment.config.tree;
  const MergedLayers merged = merge_layers(*tree.find("model")->find("layers"), net.values());
  EXPECT_EQ(kinds_of(Network(to_yaml(with_layers(tree, merged.layers))).net()),
            (std::vector<std::string>{"conv2d", "linear"}));
}

}  // namespace twiddle
