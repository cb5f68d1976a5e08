#include "models/config/layer_list.h"
#include "layers/sequential.h"

#include <algorithm>

#include "tests/models/config_text.h"

namespace twiddle {
namespace {

TEST(LayerList, NamesLayersAndExpandsRepeats) {
  const Config config = config_of(
      "version: 1\nmodel:\n  input: [3, 8, 8]\n  layers:\n"
      "    - conv2d: {name: conv2, filters: 1, kernel: 1}\n"
      "    - relu\n"
      "    - repeat:\n"
      "        times: 2\n"
      "        layers:\n"
      "          - conv2d: {filters: 2, kernel: 1}\n"
      "          - repeat: {times: 2, layers: [tanh: {name: t}, relu]}\n"
      "    - max_pool: {kernel: 2}\n"
      "    - global_avg_pool:\n"
      "    - linear: {outputs: 10}\n");
  EXPECT_EQ(names_of_layers(config),
            (std::vector<std::string>{"conv2", "relu1", "conv3", "t1.1", "relu2", "t1.2", "relu3", "conv4", "t2.1",
                                      "relu4", "t2.2", "relu5", "pool1", "pool2", "fc1"}));
  EXPECT_EQ(layer_at(config.layers, 2).value.find("filters")->text, "2");
  EXPECT_EQ(layer_at(config.layers, 7).place.line, 10);
}

TEST(LayerList, NumbersNamesInsideRepeat) {
  const Config config = config_of(
      "version: 1\nmodel:\n  input: [3, 8, 8]\n  layers:\n"
      "    - repeat:\n        times: 2\n        layers:\n"
      "          - residual: {name: stage3.block, layers: [conv2d: {name: conv1, filters: 3, kernel: 1}]}\n"
      "          - relu: {name: layer1}\n"
      "    - linear: {name: head.0, outputs: 10}\n");
  EXPECT_EQ(names_of_layers(config),
            (std::vector<std::string>{"stage3.block1", "layer1.1", "stage3.block2", "layer1.2", "head.0"}));
  EXPECT_EQ(layer_names(*layer_at(config.layers, 2).value.find("layers")), std::vector<std::string>{"conv1"});
}

TEST(LayerList, ExpandedListRoundTrips) {
  const std::string text =
      "version: 1\nmodel:\n  input: [3, 8, 8]\n  layers:\n"
      "    - parallel: {name: a.b, paths: [[relu, residual: {name: c.0, layers: [tanh: {name: d.1}]}], []]}\n"
      "    - linear: {outputs: 10}\n";
  const Experiment experiment = load_experiment_text(text, "a.yaml");
  const ConfigNode& written = experiment.config.layers;
  Diagnostics diagnostics;
  EXPECT_EQ(to_yaml(expand_layers(written, diagnostics)), to_yaml(written));
  EXPECT_EQ(diagnostics.size(), 0u);
  const std::vector<const Sequential::Item*> items = experiment.model.net->all_items();
  const auto is_named = [](const Sequential::Item* item) { return item->layer->name() == "a.b.c.0.d.1"; };
  EXPECT_TRUE(std::any_of(items.begin(), items.end(), is_named));
}

TEST(LayerList, ReportsInvalidLists) {
  const auto with = [](const std::string& layers) {
    return complaint_about("version: 1\nmodel:\n  input: [3, 8, 8]\n  layers:\n" + layers);
  };
  EXPECT_EQ(with("    - conv2d:\n      filters: 3\n"),
            "a.yaml:5:7: error: a layer is a name, or one name with its options; this has 2 keys\n"
            "    5 |     - conv2d:\n"
            "      |       ^ indent the options further than 'conv2d:'\n"
            "1 error; nothing was run.");
  EXPECT_TRUE(holds(with("    - dropout: 0.5\n"), "the options of 'dropout' must be a mapping"));
  EXPECT_TRUE(holds(with("    - [relu]\n"), "a layer is a name, or one name with its options"));
  EXPECT_TRUE(holds(with("    - relu: {name: r}\n    - tanh: {name: r}\n"),
                    "a.yaml:6:20: error: two layers are called 'r' (first at line 5)"));
  EXPECT_TRUE(holds(with("    - relu: {name: a.b}\n    - residual: {name: a, layers: [relu: {name: b}]}\n"),
                    "a.yaml:6:49: error: two layers are called 'a.b' (first at line 5)"));
  for (const char* name : {"0", "a..b", "a.", ".a", "a/b"})
    EXPECT_TRUE(holds(with(join("    - relu: {name: ", name, "}\n")), "'name' must be made of letters")) << name;
  EXPECT_TRUE(
      holds(with("    - repeat: {times: 0, layers: [relu]}\n"), "'times' must be a whole number from 1 to 1000"));
  EXPECT_TRUE(holds(with("    - repeat: {times: 2}\n"), "'repeat' needs 'layers', a list"));
  EXPECT_TRUE(holds(with("    - repeat: {time: 2, layers: [relu]}\n"), "did you mean 'times'?"));
  std::string bomb = "relu";
  for (int i = 0; i < 10; ++i) bomb = "repeat: {times: 1000, layers: [" + bomb + "]}";
  EXPECT_TRUE(holds(with("    - " + bomb + "\n"), "more than 1000 layers"));
}

TEST(LayerList, ReportsErrorInsideRepeatOnce) {
  const std::string text = complaint_about(
      "version: 1\nmodel:\n  input: [3, 8, 8]\n  layers:\n    - repeat: {times: 5, layers: [relu, dropout: 0.5]}\n");
  EXPECT_TRUE(holds(text, "1 error; nothing was run.")) << text;
}

}  // namespace
}  // namespace twiddle
