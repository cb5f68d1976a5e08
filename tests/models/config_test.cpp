#include "models/experiment.h"
#include "tests/support/temp_path.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace twiddle {

namespace {

const std::string smallest =
    "version: 1\nmodel:\n  input: [1, 8, 8]\n  layers:\n    - flatten\n    - linear: {outputs: 10}\n";

Config load(const std::string& text, const std::vector<Override>& overrides = {}) {
  return load_experiment_text(text, "a.yaml", overrides).config;
}

// What is said of a config that is refused; empty where it is not.
std::string complaint(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    load(text, overrides);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return {};
}

std::string file_complaint(const std::string& path) {
  try {
    load_experiment(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return {};
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class ConfigFiles : public testing::Test {
 protected:
  ConfigFiles() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "nets");
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  const std::filesystem::path folder_ = temp_path("config");
};

std::vector<std::string> names(const Config& config) {
  std::vector<std::string> result;
  for (const LayerConfig& layer : config.layers) result.push_back(layer.name);
  return result;
}

}  // namespace

TEST(Config, ReadsEverySection) {
  const Config config = load(
      "version: 1\nname: trial\ndevice: cuda:1\nthreads: 3\nseed: 7\n"
      "model: {input: [3, 32, 16], layers: [conv2d: {filters: 4, kernel: [32, 16]}]}\n"
      "convolution: {engine: gemm, precision: tf32, workspace_limit: 512MiB, cache: tuned.txt, retune: true}\n"
      "data: {train: {format: synthetic}, workers: 0, on_error: skip, augment: [hflip]}\n"
      "train: {optimizer: adam, learning_rate: 0.5, schedule: {cosine: {warmup: 2}}, epochs: 3, batch_size: 9,\n"
      "        clip_norm: 2, label_smoothing: 0.1, keep: 5, checkpoint_every: 100, out: results}\n");
  EXPECT_EQ(config.name, "trial");
  EXPECT_EQ(config.device, "cuda:1");
  EXPECT_EQ(config.threads, 3);
  EXPECT_EQ(config.seed, 7u);
  EXPECT_EQ(config.input, (Shape{3, 32, 16}));
  ASSERT_EQ(config.layers.size(), 1u);
  EXPECT_EQ(config.layers[0].kind, "conv2d");
  EXPECT_EQ(config.layers[0].name, "conv1");
  EXPECT_EQ(config.layers[0].options.entries.size(), 2u);
  EXPECT_EQ(to_string(config.layers[0].place), "a.yaml:6:38");
  EXPECT_EQ(config.convolution.engine, "gemm");
  EXPECT_EQ(config.convolution.precision, Precision::tf32);
  EXPECT_EQ(config.convolution.workspace_limit, 512u << 20);
  EXPECT_EQ(config.convolution.cache_file, "tuned.txt");
  EXPECT_TRUE(config.convolution.retune);
  EXPECT_TRUE(config.data.present);
  EXPECT_EQ(config.data.workers, 0);
  EXPECT_TRUE(config.data.skip_bad);
  EXPECT_NE(config.tree.find("data")->find("augment"), nullptr);
  EXPECT_EQ(config.tree.find("train")->find("optimizer")->entries.front().key, "adam");
  EXPECT_EQ(config.train.learning_rate, 0.5);
  EXPECT_EQ(config.train.schedule.warmup, 2);
  EXPECT_EQ(config.train.epochs, 3);
  EXPECT_EQ(config.train.batch_size, 9);
  EXPECT_EQ(config.train.clip_norm, 2);
  EXPECT_EQ(config.train.label_smoothing, 0.1);
  EXPECT_EQ(config.train.keep, 5);
  EXPECT_EQ(config.train.checkpoint_every, 100);
  EXPECT_EQ(config.train.out, "results");
}

TEST(Config, SmallestHasDefaults) {
  const Config config = load(smallest);
  EXPECT_EQ(config.name, "a");
  EXPECT_EQ(config.device, "auto");
  EXPECT_FALSE(config.data.present);
  EXPECT_EQ(config.tree.find("train")->find("optimizer")->entries.front().key, "sgd");
}

TEST(Config, ChoicesAreCachedWhereTheUserKeepsCaches) {
  const auto cache_file = [](const char* xdg, const std::string& more = "") {
    ::setenv("XDG_CACHE_HOME", xdg, 1);
    return load(smallest + more).convolution.cache_file;
  };
  const char* home = std::getenv("HOME");
  const std::string in_home = home != nullptr && *home == '/' ? std::string(home) + "/.cache" : "";
  EXPECT_EQ(cache_file("/somewhere"), "/somewhere/twiddle/convolutions.txt");
  EXPECT_EQ(cache_file("relative"), in_home.empty() ? "" : in_home + "/twiddle/convolutions.txt");
  EXPECT_EQ(cache_file("/somewhere", "convolution: {cache: off}\n"), "");
  EXPECT_EQ(cache_file("/somewhere", "convolution: {cache: here.txt}\n"), "here.txt");
  ::unsetenv("XDG_CACHE_HOME");
}

TEST(Config, AllErrorsInOneGo) {
  EXPECT_EQ(complaint("version: 1\n"
                      "model:\n"
                      "  input: [1, 8, 8]\n"
                      "  layers: [flatten]\n"
                      "train:\n"
                      "  optimizer:\n"
                      "    sgd:\n"
                      "      momentun: 0.9\n"
                      "  epochs: two\n"
                      "  epochs: 3\n"
                      "deterministic: yes\n"),
            "a.yaml:8:7: error: unknown key 'momentun' in 'sgd'\n"
            "    8 |       momentun: 0.9\n"
            "      |       ^~~~~~~~ did you mean 'momentum'?\n"
            "a.yaml:9:11: error: 'epochs' must be a whole number from 1 to 1000000, found \"two\"\n"
            "    9 |   epochs: two\n"
            "      |           ^~~\n"
            "a.yaml:10:3: error: duplicate key 'epochs' (first at line 9)\n"
            "   10 |   epochs: 3\n"
            "      |   ^~~~~~\n"
            "a.yaml:11:16: error: 'deterministic' must be true or false, found \"yes\"\n"
            "   11 | deterministic: yes\n"
            "      |                ^~~\n"
            "4 errors; nothing was run.");
}

TEST(Config, EachSectionRefusesWhatIsWrong) {
  const auto with = [](const std::string& line) { return complaint(smallest + line); };
  EXPECT_TRUE(holds(with("sed: 3\n"), "unknown key 'sed'")) << with("sed: 3\n");
  EXPECT_TRUE(holds(with("sed: 3\n"), "did you mean 'seed'?"));
  EXPECT_TRUE(holds(with("device: cdua\n"), "'device' must be auto, cpu, cuda or cuda:N, found \"cdua\""));
  EXPECT_TRUE(holds(with("seed: -1\n"), "'seed' must be a whole number of at least 0, found \"-1\""));
  EXPECT_TRUE(holds(with("data: {wurkers: 2}\n"), "unknown key 'wurkers' in 'data'"));
  EXPECT_TRUE(holds(with("data: {on_error: skipp}\n"), "did you mean 'skip'?"));
  EXPECT_TRUE(holds(with("data: 5\n"), "'data' must be a mapping of keys to values, found \"5\""));
  EXPECT_TRUE(holds(with("convolution: {precision: fp16}\n"), "'precision' must be one of fp32, tf32, found \"fp16\""));
  EXPECT_TRUE(holds(with("convolution: {workspace_limit: lots}\n"), "a size such as 512MiB or 2GiB, found \"lots\""));
  EXPECT_TRUE(holds(with("train: {batch_size: 0}\n"), "a whole number from 1 to 1048576, found \"0\""));
  EXPECT_TRUE(holds(with("train: {optimizer: sdg}\n"), "unknown optimizer 'sdg'; did you mean 'sgd'?"));
  EXPECT_TRUE(holds(with("train: {optimizer: {sgd: {}, adam: {}}}\n"), "'optimizer' must be a name, or one name"));
  EXPECT_TRUE(holds(with("train: {schedule: cosin}\n"), "unknown schedule 'cosin'; did you mean 'cosine'?"));
  EXPECT_TRUE(
      holds(with("deterministic: true\nconvolution: {engine: measured}\n"), "excludes engines that are measured"));
}

TEST(Config, NeedsVersionAndModel) {
  EXPECT_EQ(complaint("name: x\n"),
            "a.yaml:1:1: error: missing key 'version'\n"
            "    1 | name: x\n"
            "      | ^ write 'version: 1'\n"
            "a.yaml:1:1: error: missing key 'model'\n"
            "    1 | name: x\n"
            "      | ^ 'model: {input: [channels, height, width], layers: [...]}'\n"
            "2 errors; nothing was run.");
  EXPECT_TRUE(holds(complaint("version: 2\n"), "this program reads version 1 of the format, found 2"));
  EXPECT_TRUE(
      holds(complaint("version: 1\nmodel: {input: [8, 8], layers: []}\n"), "[channels, height, width], found 2"));
  EXPECT_TRUE(
      holds(complaint("version: 1\nmodel: {input: [1, 8, 8], layers: []}\n"), "'layers' must be a list of layers"));
  EXPECT_TRUE(holds(complaint("version: 1\nmodel: {input: [60000, 60000, 60000], layers: [relu]}\n"), "has more than"));
  EXPECT_TRUE(holds(complaint("version: 1\nmodel:\n"), "missing key 'layers' in 'model'"));
}

TEST(Config, NotAConfigAtAll) {
  EXPECT_EQ(complaint(""),
            "a.yaml: error: the config is empty\n"
            "  it needs at least 'version: 1' and 'model:'; models/digits.yaml is an example\n"
            "1 error; nothing was run.");
  EXPECT_TRUE(holds(complaint("# nothing\n"), "the config is empty"));
  EXPECT_TRUE(holds(complaint("- a\n- b\n"), "a config is a mapping of keys to values"));
  EXPECT_TRUE(holds(complaint("just words\n"), "a config is a mapping of keys to values"));
  EXPECT_TRUE(holds(complaint(std::string(100000, '[')), "nested more than 64 levels deep"));
  EXPECT_TRUE(holds(complaint(std::string("\x89PNG\r\n\x1a\n")), "not a UTF-8 text"));
}

TEST_F(ConfigFiles, FilesThatCannotBeRead) {
  EXPECT_EQ(file_complaint("no/such.yaml"),
            "error: cannot read 'no/such.yaml': No such file or directory\n1 error; nothing was run.");
  EXPECT_TRUE(holds(file_complaint(folder_.string()), "it is a folder, not a config file"));
  EXPECT_TRUE(holds(file_complaint(write("empty.yaml", "")), "the config is empty"));
  EXPECT_TRUE(holds(file_complaint(write("big.yaml", std::string((4u << 20) + 1, '#'))), "more than 4 MiB"));
  EXPECT_TRUE(holds(file_complaint("/dev/zero"), "it is no regular file"));
}

TEST(Config, LayersAreNamedAndRepeatsWrittenOut) {
  const Config config = load(
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
  EXPECT_EQ(names(config),
            (std::vector<std::string>{"conv2", "relu1", "conv3", "t_1_1", "relu2", "t_1_2", "relu3", "conv4", "t_2_1",
                                      "relu4", "t_2_2", "relu5", "pool1", "pool2", "fc1"}));
  EXPECT_EQ(config.layers[2].options.find("filters")->text, "2");
  EXPECT_EQ(config.layers[2].options.find("name"), nullptr);
  EXPECT_EQ(config.layers[7].place.line, 10);
}

TEST(Config, LayerListsThatAreWrong) {
  const auto with = [](const std::string& layers) {
    return complaint("version: 1\nmodel:\n  input: [3, 8, 8]\n  layers:\n" + layers);
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

TEST(Config, AnErrorInsideARepeatIsToldOnce) {
  const std::string text = complaint(
      "version: 1\nmodel:\n  input: [3, 8, 8]\n  layers:\n    - repeat: {times: 5, layers: [relu, dropout: 0.5]}\n");
  EXPECT_TRUE(holds(text, "1 error; nothing was run.")) << text;
}

TEST(Config, OverridesReachEverything) {
  const Config config = load(smallest, {{"train.epochs", "3", "--epochs"},
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
  EXPECT_EQ(names(config), (std::vector<std::string>{"dropout1", "fc1"}));
  EXPECT_EQ(config.layers[1].options.find("outputs")->text, "20");
  EXPECT_EQ(config.layers[1].options.find("bias")->text, "false");
  EXPECT_EQ(config.input, (Shape{3, 4, 5}));
  EXPECT_EQ(config.tree.find("data")->find("train")->find("images")->text, "a.gz");
}

TEST(Config, OverridesThatAreWrongAreNamed) {
  EXPECT_EQ(complaint(smallest, {{"train.epocs", "3", "--set"}}),
            "--set train.epocs=3: error: unknown key 'epocs' in 'train'\n"
            "  did you mean 'epochs'?\n"
            "1 error; nothing was run.");
  EXPECT_EQ(complaint(smallest, {{"train.epochs", "many", "--epochs"}}),
            "--epochs many: error: 'epochs' must be a whole number from 1 to 1000000, found \"many\"\n"
            "1 error; nothing was run.");
  const auto with = [](const std::string& key, const std::string& value) {
    return complaint(smallest, {{key, value, "--set"}});
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
  EXPECT_TRUE(holds(with("model", "null"), "missing key 'layers'"));
  EXPECT_TRUE(holds(with("train", ""), "--set train=: error: there is no value behind the '='"));
  EXPECT_TRUE(holds(with("train.epochs", " "), "there is no value behind the '='"));
}

TEST_F(ConfigFiles, BaseIsMergedBelow) {
  write("nets/base.yaml",
        "version: 1\nseed: 5\nmodel: {input: [1, 8, 8], layers: [relu, linear: {outputs: 4}]}\n"
        "data: {train: {format: synthetic, images: 10}, workers: 1}\n"
        "train: {optimizer: {sgd: {momentum: 0.9}}, epochs: 3, batch_size: 7}\n");
  const Config config = load_experiment(write("top.yaml",
                                              "version: 1\nbase: nets/base.yaml\nmodel: {layers: [flatten]}\ndata: "
                                              "{train: {format: cifar10, path: x}}\n"
                                              "train: {optimizer: {adam: {beta1: 0.8}}, epochs: 4}\n"))
                            .config;
  EXPECT_EQ(config.seed, 5u);
  EXPECT_EQ(config.input, (Shape{1, 8, 8}));
  EXPECT_EQ(names(config), std::vector<std::string>{"flatten1"});
  EXPECT_EQ(config.data.workers, 1);
  EXPECT_EQ(config.tree.find("data")->find("train")->find("images"),
            nullptr);  // another format's options are not mixed in
  EXPECT_EQ(config.tree.find("train")->find("optimizer")->entries.size(), 1u);
  EXPECT_EQ(config.train.epochs, 4);
  EXPECT_EQ(config.train.batch_size, 7);
  EXPECT_EQ(config.tree.find("base"), nullptr);
  EXPECT_EQ(config.name, "top");
}

TEST_F(ConfigFiles, BadBases) {
  const std::string missing = file_complaint(write("a.yaml", "version: 1\nbase: none.yaml\n" + smallest.substr(11)));
  EXPECT_TRUE(holds(missing, "a.yaml:2:7: error: cannot read '" + (folder_ / "none.yaml").string() + "': No such file"))
      << missing;
  write("b.yaml", "version: 1\nbase: c.yaml\n" + smallest.substr(11));
  const std::string circle =
      file_complaint(write("c.yaml", "version: 1\nbase: nets/../b.yaml\n" + smallest.substr(11)));
  EXPECT_TRUE(holds(circle, "b.yaml:2:7: error: 'base' goes round in a circle")) << circle;
  EXPECT_TRUE(
      holds(file_complaint(write("d.yaml", "version: 1\nbase: d.yaml\n" + smallest.substr(11))), "in a circle"));
  EXPECT_TRUE(holds(file_complaint(write("e.yaml", "version: 1\nbase: [x]\n" + smallest.substr(11))),
                    "'base' must be the path of another config"));
  write("nets/wrong.yaml", "version: 1\nmodel: {input: [1, 8, 8], layers: [relu]}\nepochs: 3\n");
  const std::string inner = file_complaint(write("f.yaml", "version: 1\nbase: nets/wrong.yaml\n"));
  EXPECT_TRUE(holds(inner, "nets/wrong.yaml:3:1: error: unknown key 'epochs'")) << inner;
}

TEST(Config, EnvironmentInDataPaths) {
  ::setenv("TWIDDLE_TEST_FOLDER", "/mnt/${X}", 1);
  ::unsetenv("TWIDDLE_TEST_UNSET");
  const Config config =
      load(smallest + "data: {train: {format: idx, images: \"${TWIDDLE_TEST_FOLDER}/a.gz\", labels: b.gz}}\n");
  EXPECT_EQ(config.tree.find("data")->find("train")->find("images")->text, "/mnt/${X}/a.gz");
  EXPECT_TRUE(holds(complaint(smallest + "data: {train: {images: \"${TWIDDLE_TEST_UNSET}/a.gz\"}}\n"),
                    "a.yaml:7:24: error: environment variable 'TWIDDLE_TEST_UNSET' is not set"));
  EXPECT_TRUE(holds(complaint(smallest + "data: {train: {images: \"${TWIDDLE\"}}\n"), "'${' without its '}'"));
  EXPECT_TRUE(holds(complaint(smallest + "data: {train: {images: ${DATA}/a}}\n"), "put quotes around ${...}"));
}

TEST(Config, AVariableIsNeededWhereItsDatasetIsOpened) {
  ::unsetenv("TWIDDLE_TEST_UNSET");
  const std::string config = smallest +
                             "data:\n"
                             "  train: {format: idx, images: \"${TWIDDLE_TEST_UNSET}/a.gz\", labels: b.gz}\n"
                             "  val: {format: idx, images: \"${TWIDDLE_TEST_UNSET}/c.gz\", labels: d.gz}\n";
  const auto told = [&](OpenedData opens) {
    try {
      load_experiment_text(config, "a.yaml", {}, {.opens = opens});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_TRUE(holds(told(OpenedData::all), "a.yaml:8:32: error: environment variable"));
  EXPECT_TRUE(holds(told(OpenedData::all), "a.yaml:9:30: error: environment variable"));
  EXPECT_FALSE(holds(told(OpenedData::validation), "a.yaml:8:"));
  EXPECT_TRUE(holds(told(OpenedData::validation), "a.yaml:9:30: error: environment variable"));
  EXPECT_EQ(told(OpenedData::none), "");
}

TEST(Config, TheResolvedTreeReadsBack) {
  const Config config = load(smallest + "train: {optimizer: {sgd: {momentum: 0.9}}, out: \"10\"}\n",
                             {{"model.layers.fc1.bias", "false", "--set"}});
  const std::string written = to_yaml(config.tree);
  const Config again = load_experiment_text(written, "elsewhere/config.yaml").config;
  EXPECT_EQ(to_yaml(again.tree), written);
  EXPECT_EQ(again.name, "a");
  EXPECT_EQ(names(again), names(config));
  EXPECT_EQ(again.layers[1].options.find("bias")->text, "false");
}

// A program whose defaults are others reads the same run.
TEST(Config, TheTreeHoldsEveryKeyAsItIsUsed) {
  const Config config = load(
      "version: 1\n"
      "model:\n"
      "  input: [3, 32, 32]\n"
      "  layers:\n"
      "    - conv2d: {filters: 4, kernel: 3}\n"
      "    - max_pool: {kernel: [2, 1]}\n"
      "    - linear: {outputs: 10, init: {gaussian: 0.01}}\n"
      "data:\n"
      "  train: {format: synthetic}\n"
      "  augment: [hflip, {pad_crop: {pad: 2}}]\n"
      "train: {optimizer: sgd, schedule: {step: {every: 2}}}\n");
  EXPECT_EQ(to_yaml(config.tree), R"(version: 1
name: a
device: auto
threads: 0
seed: 1
deterministic: false
model:
  input: [3, 32, 32]
  layers:
    - conv2d: {name: conv1, filters: 4, kernel: 3, stride: 1, pad: 0, dilation: 1, groups: 1, bias: true, init: he, bias_init: 0, lr: 1, bias_lr: 1}
    - max_pool: {name: pool1, kernel: [2, 1], stride: [2, 1], pad: 0, rounding: floor}
    - linear: {name: fc1, outputs: 10, init: {gaussian: 0.01}, lr: 1, bias: true, bias_init: 0, bias_lr: 1}
convolution:
  engine: auto
  precision: fp32
  workspace_limit: 4GiB
  frequency_budget: 4GiB
  cache: auto
  retune: false
data:
  workers: 2
  on_error: fail
  max_pixels: 67108864
  drop_last: false
  train: {format: synthetic, images: 1024, seed: 1, first: 0}
  augment:
    - hflip: 0.5
    - pad_crop: {pad: 2, size: 32}
train:
  optimizer: {sgd: {momentum: 0, weight_decay: 0, nesterov: false}}
  learning_rate: 0.01
  schedule: {step: {warmup: 0, warmup_start: 0, every: 2, gamma: 0.1}}
  epochs: 10
  batch_size: 64
  clip_norm: 0
  label_smoothing: 0
  keep: 3
  checkpoint_every: 0
  out: runs
)");
}

TEST(Config, TheTreeOfAConfigWithoutDataHasNone) {
  EXPECT_EQ(load(smallest).tree.find("data"), nullptr);
}

TEST_F(ConfigFiles, PathsInTheTreeAreAbsolute) {
  write("nets/images.gz", "");
  write("nets/base.yaml",
        "version: 1\ndata: {train: {format: idx, images: ../nets/images.gz, labels: not/there.gz}}\n");
  const Config config = load_experiment(write("top.yaml", "base: nets/base.yaml\n" + smallest)).config;
  const ConfigNode& train = *config.tree.find("data")->find("train");
  EXPECT_EQ(train.find("images")->text, (folder_ / "nets" / "images.gz").string());  // beside the file that names it
  EXPECT_EQ(train.find("labels")->text, "not/there.gz");
}

TEST(Config, EveryShippedModelLoads) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator("models")) {
    if (entry.path().extension() != ".yaml") continue;
    ++models;
    const Config config = load_experiment(entry.path().string()).config;
    EXPECT_EQ(config.name, entry.path().stem());
    EXPECT_TRUE(config.data.present) << entry.path();
    EXPECT_EQ(to_yaml(load_experiment_text(to_yaml(config.tree), "config.yaml").config.tree), to_yaml(config.tree));
  }
  EXPECT_EQ(models, 11);
}

}  // namespace twiddle
