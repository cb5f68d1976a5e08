#include <gtest/gtest.h>

#include "layers/layer.h"
#include "models/config/experiment.h"

namespace twiddle {

namespace {

// Returns the error message for a config; empty if it is accepted.
std::string errors_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    load_experiment_text(text, "a.yaml", overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return {};
}

}  // namespace

// Sections, optimizer, layers and their shapes, datasets, augmentation: no error hides another.
TEST(ConfigErrors, ReportAllSectionsTogether) {
  const std::string config = R"(version: 1
model:
  input: [1, 8, 8]
  layers:
    - conv2d: {filters: 4, kernel: 9}
    - max_pool: {kernel: 2, strid: 2}
    - dropout: {rate: half}
    - rellu
convolution: {engine: gem}
data:
  train: {format: idx, images: no/such.gz, labels: no/such.gz, cuont: 7}
  val: {format: synthetik}
  augment: [{random_crop: big}, vflip]
train: {optimizer: {sgd: {momentum: 2}}, epochs: two}
)";
  EXPECT_EQ(errors_of(config, {{"seed", "none", "--seed"}}),
            R"(--seed none: error: 'seed' must be a whole number of at least 0, found "none"
a.yaml:5:7: error: layer 'conv1': conv2d: kernel 9x9 does not fit the input 8x8 with pad 0: the padded input is 8x8
    5 |     - conv2d: {filters: 4, kernel: 9}
      |       ^~~~~~ its input is 1x8x8 (model.input)
a.yaml:6:29: error: unknown key 'strid' in 'max_pool'
    6 |     - max_pool: {kernel: 2, strid: 2}
      |                             ^~~~~ did you mean 'stride'?
a.yaml:7:23: error: 'rate' must be a number from 0 to 0.999, found "half"
    7 |     - dropout: {rate: half}
      |                       ^~~~
a.yaml:8:7: error: unknown layer 'rellu'; did you mean 'relu'?
    8 |     - rellu
      |       ^~~~~
a.yaml:9:23: error: unknown convolution engine 'gem'; did you mean 'gemm'?
    9 | convolution: {engine: gem}
      |                       ^~~
a.yaml:11:64: error: unknown key 'cuont' in 'data.train'
   11 |   train: {format: idx, images: no/such.gz, labels: no/such.gz, cuont: 7}
      |                                                                ^~~~~ did you mean 'count'?
a.yaml:12:17: error: unknown dataset 'synthetik'; did you mean 'synthetic'?
   12 |   val: {format: synthetik}
      |                 ^~~~~~~~~
a.yaml:13:27: error: 'random_crop' must be a whole number from 1 to 32768, or two of them as [height, width], found "big"
   13 |   augment: [{random_crop: big}, vflip]
      |                           ^~~
a.yaml:13:33: error: there is no augment step 'vflip' yet; known are: center_crop, color_jitter, hflip, pad_crop, rand_augment, random_crop, random_erasing, random_resized_crop, resize
   13 |   augment: [{random_crop: big}, vflip]
      |                                 ^~~~~
a.yaml:14:37: error: 'momentum' must be a number from 0 to 1, found "2"
   14 | train: {optimizer: {sgd: {momentum: 2}}, epochs: two}
      |                                     ^
a.yaml:14:50: error: 'epochs' must be a whole number from 1 to 1000000, found "two"
   14 | train: {optimizer: {sgd: {momentum: 2}}, epochs: two}
      |                                                  ^~~
12 errors; nothing was run.)");
}

TEST(ConfigErrors, NameLayerOfTooLargeBatch) {
  const std::string config = R"(version: 1
model:
  input: [1, 1024, 1024]
  layers:
    - conv2d: {filters: 1, kernel: 1}
    - conv2d: {filters: 4, kernel: 1}
    - linear: {outputs: 2}
train: {batch_size: 1000000}
)";
  const std::string error =
      R"(a.yaml:6:7: error: layer 'conv2', batch of 1000000 images: conv2d: the output 1000000x4x1024x1024 is too large
    6 |     - conv2d: {filters: 4, kernel: 1}
      |       ^~~~~~ set train.batch_size to 262144 or less)";
  EXPECT_EQ(errors_of(config).substr(0, error.size()), error);
  EXPECT_EQ(errors_of(config, {{"train.batch_size", "262144", "--set"}}), "");
}

TEST(ConfigErrors, ReportOptionsDespiteInvalidInput) {
  const std::string config = R"(version: 1
model:
  input: [1, 8]
  layers: [conv2d: {filters: 4, kernel: 9, pads: 1}, avg_pool: {kernel: 2, count_pading: true},
           linear: {inputs: 7, outputs: 10, bais: false}]
data: {augment: [hflop], normalize: imagenet}
)";
  EXPECT_EQ(errors_of(config), R"(a.yaml:3:10: error: 'input' must be [channels, height, width], found 2 numbers
    3 |   input: [1, 8]
      |          ^
a.yaml:4:44: error: unknown key 'pads' in 'conv2d'
    4 |   layers: [conv2d: {filters: 4, kernel: 9, pads: 1}, avg_pool: {kernel: 2, count_pading: true},
      |                                            ^~~~ did you mean 'pad'?
a.yaml:4:76: error: unknown key 'count_pading' in 'avg_pool'
    4 |   layers: [conv2d: {filters: 4, kernel: 9, pads: 1}, avg_pool: {kernel: 2, count_pading: true},
      |                                                                            ^~~~~~~~~~~~ did you mean 'count_padding'?
a.yaml:5:45: error: unknown key 'bais' in 'linear'
    5 |            linear: {inputs: 7, outputs: 10, bais: false}]
      |                                             ^~~~ did you mean 'bias'?
a.yaml:6:18: error: unknown augment step 'hflop'; did you mean 'hflip'?
    6 | data: {augment: [hflop], normalize: imagenet}
      |                  ^~~~~
5 errors; nothing was run.)");
}

// Also if the layer does not accept its input shape, as layers that need planes after a linear layer.
TEST(ConfigErrors, ReportUnknownKeyOfEveryLayer) {
  for (const std::string& kind : builtin_layers().names()) {
    const std::string text =
        errors_of("version: 1\nmodel:\n  layers:\n    - linear: {outputs: 1}\n    - " + kind + ": {frob: 1}\n");
    EXPECT_NE(text.find("a.yaml:5:" + std::to_string(10 + kind.size()) + ": error: unknown key 'frob'"),
              std::string::npos)
        << kind << "\n"
        << text;
  }
}

TEST(ConfigErrors, SkipShapesOfInvalidLayerList) {
  const std::string text =
      errors_of("version: 1\nmodel:\n  input: [1, 8, 8]\n  layers: [[relu], conv2d: {filters: 1, kernel: 9}]\n");
  EXPECT_NE(text.find("1 error; nothing was run."), std::string::npos) << text;
}

TEST(ConfigErrors, RefuseDecreasingMilestones) {
  const std::string config =
      "version: 1\nmodel: {input: [1, 8, 8], layers: [relu]}\n"
      "train: {schedule: {multistep: {milestones: [8, 3]}}}\n";
  EXPECT_NE(errors_of(config).find("'milestones' are epochs in the order in which they come"), std::string::npos);
}

TEST(ConfigErrors, IgnoreEnginesIfDeviceIsMissing) {
  const std::string config =
      "version: 1\nmodel: {input: [1, 8, 8], layers: [conv2d: {filters: 1, kernel: 8}]}\n"
      "device: cuda:999\nconvolution: {engine: cudnn}\n";
  EXPECT_EQ(errors_of(config), "");
}

TEST(ConfigErrors, RequireScoresAsOutput) {
  const std::string config = "version: 1\nmodel:\n  input: [1, 8, 8]\n  layers:\n";
  EXPECT_EQ(errors_of(config + "    - conv2d: {filters: 10, kernel: 3}\n    - relu\n"),
            "a.yaml:6:7: error: the network must end in a row of scores, one per class, but 'relu1' gives 10x6x6\n"
            "    6 |     - relu\n"
            "      |       ^~~~ end with '- linear: {outputs: CLASSES}'; the loss includes softmax\n"
            "1 error; nothing was run.");
  EXPECT_EQ(errors_of(config + "    - conv2d: {filters: 10, kernel: 8}\n"), "");  // 10x1x1
  EXPECT_EQ(errors_of(config + "    - conv2d: {filters: 10, kernel: 3}\n    - global_avg_pool\n"), "");
  EXPECT_EQ(errors_of(config + "    - flatten\n"), "");
}

// Wherever the long string is, in a key or in a value, with or without blanks.
TEST(ConfigErrors, TruncateLongStrings) {
  const std::vector<std::string> configs{
      "version: LONG\nname: LONG\ndevice: LONG\nseed: LONG\nLONG: 3\n",
      "version: 1\nbase: LONG\n",
      "version: 1\nmodel:\n  input: LONG\n  LONG: 3\n  layers:\n    - LONG\n    - LONG: {kernel: 2}\n    - linear: "
      "LONG\n",
      "version: 1\nmodel: {input: [LONG, 1, 1], layers: [max_pool: {kernel: LONG, LONG: 1}, relu: {name: LONG}]}\n",
      "version: 1\nmodel: {input: [1, 8, 8], layers: [conv2d: {filters: 1, kernel: 1, engine: LONG, init: LONG}]}\n",
      "version: 1\nmodel: {input: [1, 8, 8], layers: [{repeat: {times: LONG, layers: LONG, LONG: 1}}, LONG: 1, b: "
      "2]}\n",
      "convolution: {engine: LONG, precision: LONG, workspace_limit: LONG, retune: LONG, LONG: 1}\n",
      "convolution: {engine: 'gemm:LONG'}\n",
      "data: {train: {format: LONG}, val: {format: idx, images: '${LONG', labels: LONG, LONG: 1}, augment: [LONG: "
      "2]}\n",
      "data: {augment: [LONG, resize: LONG, hflip: {LONG: 1}], normalize: LONG, on_error: LONG, workers: LONG}\n",
      "train: {optimizer: LONG, loss: LONG, schedule: LONG, epochs: LONG, learning_rate: LONG, LONG: 1, watch: LONG}\n",
      "train: {optimizer: {LONG: {a: 1}}, schedule: {LONG: {b: 1}}, loss: {LONG: 1}, ema: LONG, early_stop: {LONG: "
      "1}}\n",
      "version: 1\nmodel: {input: [1, 8, 8], layers: [linear: {outputs: 2}]}\ntrain: {freeze: LONG}\n",
      "version: 1\nmodel: {input: [1, 8, 8], layers: [linear: {outputs: 2}]}\ntrain: {learning_rates: {'LONG': 1}}\n",
      "LONG: 1\nLONG: 2\n",
      "a: !LONG b\n",
      "a: 'LONG\n",
      "[LONG\n",
      "a: LONG: LONG\n",
  };
  for (const std::string& letters : {std::string("x"), std::string("x y ")}) {
    std::string text;
    while (text.size() < 30000) text += letters;
    text += "x";
    for (std::string config : configs) {
      const std::string shape = config;
      for (std::size_t at = config.find("LONG"); at != config.npos; at = config.find("LONG", at + text.size()))
        config.replace(at, 4, text);
      for (const std::string& message : {errors_of(config), errors_of(shape, {{"model.name", text, "--set"}})}) {
        EXPECT_NE(message, "") << shape;
        EXPECT_LT(message.size(), 10000u) << shape << message.substr(0, 1000);
      }
    }
  }
}

TEST(ConfigErrors, CountManyErrors) {
  std::string config = "version: 1\nmodel: {input: [1, 8, 8], layers: [linear: {outputs: 2}]}\ndata: {augment: [";
  for (int i = 0; i < 2000; ++i) config += "hflop, ";
  const std::string message = errors_of(config + "hflop]}\n");
  EXPECT_NE(message.find("\nand 1901 more\n2001 errors; nothing was run."), std::string::npos)
      << message.substr(message.size() - 200);
}

TEST(ConfigErrors, SuggestLayersOfOtherFrameworks) {
  const auto with_last = [](const std::string& layer) {
    return errors_of("version: 1\nmodel:\n  input: [1, 8, 8]\n  layers: [linear: {outputs: 10}, " + layer + "]\n");
  };
  const auto holds = [&](const std::string& layer, const std::string& part) {
    return with_last(layer).find(part) != std::string::npos;
  };
  EXPECT_TRUE(holds("softmax", "there is no layer 'softmax': leave it out: the loss includes softmax"));
  EXPECT_TRUE(holds("LogSoftmax", "the loss includes softmax"));
  EXPECT_TRUE(holds("add", "there is no layer 'add': paths are joined by 'residual: "));
  EXPECT_TRUE(holds("concat: {axis: 1}", "'parallel: {join: concat, paths: [...]}'"));
  EXPECT_TRUE(holds("mish", "unknown layer 'mish'; known are: "));
  EXPECT_TRUE(holds("GELU", "there is no layer 'GELU': it is called 'gelu'"));
  EXPECT_TRUE(holds("Hardswish", "it is called 'hard_swish'"));
  EXPECT_TRUE(holds("swish", "it is called 'silu'"));
  EXPECT_TRUE(holds("ReflectionPad2d", "it is called 'pad', with 'mode: mirror'"));
  EXPECT_TRUE(holds("deconv", "it is called 'conv_transpose2d'"));
  EXPECT_TRUE(holds("LayerNorm", "it is called 'layer_norm'"));
  EXPECT_TRUE(holds("StochasticDepth: {p: 0.1}", "it is called 'drop_path'"));
  EXPECT_TRUE(holds("dense: {outputs: 3}", "it is called 'linear'"));
  EXPECT_TRUE(holds("rellu", "did you mean 'relu'?"));
}

}  // namespace twiddle
