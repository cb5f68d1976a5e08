#include "tests/models/config_text.h"

namespace twiddle {
namespace {

TEST(Overrides, ReachEverything) {
  const Config config =
      config_of(smallest_config, {{"train.epochs", "3", "--epochs"},
                                  {"train.optimizer.sgd.momentum", "0.5", "--set"},
                                  {"train.schedule", "cosine", "--set"},
                                  {"train.schedule.step.every", "7", "--set"},
                                  {"model.layers.fc1.outputs", "20", "--set"},
                                  {"model.layers.0", "{dropout: {rate: 0.1}}", "--set"},
                                  {"model.layers.1.bias", "false", "--set"},
                                  {"model.input", "[3, 4, 5]", "--set"},
                                  {"data.train", "{format: idx, images: a.gz, labels: b.gz}", "--set"}});
  EXPECT_EQ(config.train.epochs, 3);
  EXPECT_EQ(config.tree.find("train")->find("optimizer")->find("sgd")->find("momentum")->text, "0.5");
  EXPECT_EQ(config.train.schedule.kind, Schedule::Kind::step);
  EXPECT_EQ(config.train.schedule.every, 7);
  EXPECT_EQ(names_of_layers(config), (std::vector<std::string>{"dropout1", "fc1"}));
  EXPECT_EQ(layer_at(config.layers, 1).value.find("outputs")->text, "20");
  EXPECT_EQ(layer_at(config.layers, 1).value.find("bias")->text, "false");
  EXPECT_EQ(config.input, (Shape{3, 4, 5}));
  EXPECT_EQ(config.tree.find("data")->find("train")->find("images")->text, "a.gz");
}

TEST(Overrides, ReplacePrecisionInEitherPlace) {
  for (const std::string before : {"precision: tf32\n", "convolution: {precision: tf32, engine: rule}\n"})
    for (const std::string key : {"precision", "convolution.precision"}) {
      const Config config = config_of(smallest_config + before, {{key, "bf16", "--set"}});
      EXPECT_EQ(config.convolution.precision, Precision::bf16) << before << key;
      EXPECT_EQ(config.tree.find("convolution")->find("precision"), nullptr) << before << key;
    }
}

TEST(Overrides, ReplaceOptionsOfAnotherChoice) {
  for (const std::string before : {"cross_entropy", "{cross_entropy: {label_smoothing: 0.1}}"}) {
    const Config config =
        config_of(smallest_config,
                  {{"train.loss", before, "--set"}, {"train.loss.binary_cross_entropy.positive_weight", "2", "--set"}});
    const ConfigNode& loss = *config.tree.find("train")->find("loss");
    EXPECT_EQ(loss.find("cross_entropy"), nullptr) << before;
    EXPECT_NE(loss.find("binary_cross_entropy"), nullptr) << before;
  }
}

TEST(Overrides, NullRemovesKey) {
  const std::string text = smallest_config + "data: {train: {format: synthetic}, val: {format: synthetic}}\n" +
                           "train: {epochs: 3, mixup: 0.2, loss: {cross_entropy: {label_smoothing: 0.1}}}\n";
  const Config config = config_of(text, {{"train.epochs", "null", "--set"},
                                         {"train.mixup", "null", "--set"},
                                         {"train.loss", "null", "--set"},
                                         {"data.val", "null", "--set"},
                                         {"train.ema", "null", "--set"}});
  EXPECT_EQ(config.train.epochs, Config::Train().epochs);
  EXPECT_FALSE(config.train.mixing.any());
  EXPECT_EQ(config.tree.find("train")->find("loss")->find("cross_entropy")->find("label_smoothing")->text, "0");
  EXPECT_EQ(config.tree.find("data")->find("val"), nullptr);
  EXPECT_FALSE(config_of(text, {{"data", "null", "--set"}}).data.present);
}

TEST(Overrides, ReachLayersInPaths) {
  const std::string text =
      "version: 1\nmodel:\n  input: [1, 8, 8]\n  layers:\n"
      "    - residual: {name: block, shortcut: [conv2d: {filters: 2, kernel: 1}], layers: [conv2d: {filters: 2, "
      "kernel: 1}]}\n"
      "    - parallel: {paths: [[], [residual: {layers: [dropout: {rate: 0.5}]}]]}\n    - linear: {outputs: 10}\n";
  const Config config = config_of(text, {{"model.layers.block.conv1.filters", "3", "--set"},
                                         {"model.layers.block.shortcut.conv2.filters", "3", "--set"},
                                         {"model.layers.parallel1.residual1.dropout1.rate", "0.25", "--set"},
                                         {"model.layers.parallel1.paths.0", "[relu]", "--set"},
                                         {"model.layers.parallel1.join", "add", "--set"}});
  const ConfigNode& block = layer_at(config.layers, 0).value;
  const ConfigNode &inner = layer_at(*block.find("layers"), 0).value,
                   &shortcut = layer_at(*block.find("shortcut"), 0).value;
  EXPECT_EQ(inner.find("name")->text, "conv1");
  EXPECT_EQ(inner.find("filters")->text, "3");
  EXPECT_EQ(shortcut.find("name")->text, "conv2");
  EXPECT_EQ(shortcut.find("filters")->text, "3");
  const ConfigNode& paths = *layer_at(config.layers, 1).value.find("paths");
  EXPECT_EQ(layer_names(paths.items.at(0)), std::vector<std::string>{"relu1"});
  const ConfigNode& residual = layer_at(paths.items.at(1), 0).value;
  EXPECT_EQ(layer_at(*residual.find("layers"), 0).value.find("rate")->text, "0.25");
  EXPECT_TRUE(holds(complaint_about(text, {{"model.layers.block.conv7.filters", "3", "--set"}}),
                    "unknown layer 'conv7'; did you mean 'conv1'?"));
}

TEST(Overrides, ReachLayersWhoseNamesHaveDots) {
  const std::string text =
      "version: 1\nmodel:\n  input: [1, 8, 8]\n  layers:\n"
      "    - residual: {name: layer1.0, layers: [conv2d: {name: conv.1, filters: 1, kernel: 1}]}\n"
      "    - linear: {outputs: 10}\n";
  const Config config = config_of(
      text, {{"model.layers.layer1.0.conv.1.bias", "false", "--set"}, {"model.layers.0.conv.1.lr", "2", "--set"}});
  const ConfigNode& inside = layer_at(*layer_at(config.layers, 0).value.find("layers"), 0).value;
  EXPECT_EQ(inside.find("bias")->text, "false");
  EXPECT_EQ(inside.find("lr")->text, "2");
  EXPECT_TRUE(holds(complaint_about(text, {{"model.layers.layer1.7.lr", "2", "--set"}}), "unknown layer 'layer1'"));
}

TEST(Overrides, NameInvalidOverride) {
  EXPECT_EQ(complaint_about(smallest_config, {{"train.epocs", "3", "--set"}}),
            "--set train.epocs=3: error: unknown key 'epocs' in 'train'\n"
            "  did you mean 'epochs'?\n"
            "1 error; nothing was run.");
  EXPECT_EQ(complaint_about(smallest_config, {{"train.epochs", "many", "--epochs"}}),
            "--epochs many: error: 'epochs' must be a whole number from 1 to 1000000, found \"many\"\n"
            "1 error; nothing was run.");
  const auto with = [](const std::string& key, const std::string& value) {
    return complaint_about(smallest_config, {{key, value, "--set"}});
  };
  EXPECT_TRUE(holds(with("model.layers.fc2.outputs", "3"), "unknown layer 'fc2'; did you mean 'fc1'?"));
  EXPECT_TRUE(holds(with("model.layers.9", "relu"), "'model.layers' has 2 items, counted from 0: there is no '9'"));
  EXPECT_TRUE(holds(with("version.x", "3"), "'version' is a value, not a section: it has no 'x'"));
  EXPECT_EQ(with("train.epochs", "[1,2"),
            "--set train.epochs=[1,2: error: not valid YAML: this '[' is never closed\n1 error; nothing was run.");
  EXPECT_TRUE(holds(with("device", "a: b: c"), "a ':' that belongs to no key"));
  EXPECT_TRUE(holds(with("device", "a: b: c"), "put quotes around"));
  EXPECT_TRUE(holds(with("", "3"), "the key has an empty part"));
  EXPECT_TRUE(holds(with("train..epochs", "3"), "the key has an empty part"));
  EXPECT_TRUE(holds(with("train.epochs.", "3"), "the key has an empty part"));
  EXPECT_TRUE(holds(with("a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", "[1]"),
                    "nested more than 32 levels deep"));
  EXPECT_TRUE(holds(with("base", "x.yaml"), "'base' cannot be set"));
  EXPECT_TRUE(holds(with("model", "null"), "missing key 'model'"));
  EXPECT_TRUE(holds(with("train", ""), "--set train=: error: there is no value after the '='"));
  EXPECT_TRUE(holds(with("train.epochs", " "), "there is no value after the '='"));
}

}  // namespace
}  // namespace twiddle
