#include "models/layer_list.h"

#include "tests/models/config_text.h"

namespace twiddle {
namespace {

TEST(LayerList, LayersAreNamedAndRepeatsWrittenOut) {
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
            (std::vector<std::string>{"conv2", "relu1", "conv3", "t_1_1", "relu2", "t_1_2", "relu3", "conv4", "t_2_1",
                                      "relu4", "t_2_2", "relu5", "pool1", "pool2", "fc1"}));
  EXPECT_EQ(config.layers[2].options.find("filters")->text, "2");
  EXPECT_EQ(config.layers[2].options.find("name"), nullptr);
  EXPECT_EQ(config.layers[7].place.line, 10);
}

TEST(LayerList, TellsWhatIsWrong) {
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
  EXPECT_TRUE(holds(with("    - relu: {name: a.b}\n"), "'name' must be made of letters"));
  EXPECT_TRUE(
      holds(with("    - repeat: {times: 0, layers: [relu]}\n"), "'times' must be a whole number from 1 to 1000"));
  EXPECT_TRUE(holds(with("    - repeat: {times: 2}\n"), "'repeat' needs 'layers', a list"));
  EXPECT_TRUE(holds(with("    - repeat: {time: 2, layers: [relu]}\n"), "did you mean 'times'?"));
  std::string bomb = "relu";
  for (int i = 0; i < 10; ++i) bomb = "repeat: {times: 1000, layers: [" + bomb + "]}";
  EXPECT_TRUE(holds(with("    - " + bomb + "\n"), "more than 1000 layers"));
}

TEST(LayerList, AnErrorInsideARepeatIsToldOnce) {
  const std::string text = complaint_about(
      "version: 1\nmodel:\n  input: [3, 8, 8]\n  layers:\n    - repeat: {times: 5, layers: [relu, dropout: 0.5]}\n");
  EXPECT_TRUE(holds(text, "1 error; nothing was run.")) << text;
}

}  // namespace
}  // namespace twiddle
