#include "models/config/config.h"

#include <cstdlib>

#include "tests/models/config_text.h"

namespace twiddle {
namespace {

TEST(Config, ReadsEverySection) {
  const Config config = config_of(
      "version: 1\nname: trial\ndevice: cuda:1\nthreads: 3\nseed: 7\n"
      "model: {input: [3, 32, 16], layers: [conv2d: {filters: 4, kernel: [32, 16]}]}\n"
      "precision: tf32\nconvolution: {engine: gemm, workspace_limit: 512MiB, cache: tuned.txt, retune: true}\n"
      "data: {train: {format: synthetic}, workers: 0, on_error: skip, augment: [hflip]}\n"
      "train: {optimizer: adam, learning_rate: 0.5, schedule: {cosine: {warmup: 2}}, epochs: 3, batch_size: 9,\n"
      "        clip_norm: 2, label_smoothing: 0.1, keep: 5, checkpoint_every: 100, out: results, collective_timeout: "
      "600}\n");
  EXPECT_EQ(config.name, "trial");
  EXPECT_EQ(config.device, "cuda:1");
  EXPECT_EQ(config.threads, 3);
  EXPECT_EQ(config.seed, 7u);
  EXPECT_EQ(config.input, (Shape{3, 32, 16}));
  ASSERT_EQ(config.layers.items.size(), 1u);
  const ConfigNode::Entry& layer = layer_at(config.layers, 0);
  EXPECT_EQ(layer.key, "conv2d");
  EXPECT_EQ(layer.value.find("name")->text, "conv1");
  EXPECT_EQ(layer.value.entries.size(), 3u);
  EXPECT_EQ(to_string(layer.place), "a.yaml:6:38");
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
  EXPECT_EQ(config.train.keep, 5);
  EXPECT_EQ(config.train.checkpoint_every, 100);
  EXPECT_EQ(config.train.collective_timeout, 600);
  EXPECT_EQ(config.train.out, "results");
}

TEST(Config, FillsDefaults) {
  const Config config = config_of(smallest_config);
  EXPECT_EQ(config.name, "a");
  EXPECT_EQ(config.device, "auto");
  EXPECT_FALSE(config.data.present);
  EXPECT_EQ(config.tree.find("train")->find("optimizer")->entries.front().key, "sgd");
}

TEST(Config, PutsChoicesIntoUserCache) {
  const auto cache_file = [](const char* xdg, const std::string& more = "") {
    ::setenv("XDG_CACHE_HOME", xdg, 1);
    return config_of(smallest_config + more).convolution.cache_file;
  };
  const char* home = std::getenv("HOME");
  const std::string in_home = home != nullptr && *home == '/' ? std::string(home) + "/.cache" : "";
  EXPECT_EQ(cache_file("/somewhere"), "/somewhere/twiddle/convolutions.txt");
  EXPECT_EQ(cache_file("relative"), in_home.empty() ? "" : in_home + "/twiddle/convolutions.txt");
  EXPECT_EQ(cache_file("/somewhere", "convolution: {cache: off}\n"), "");
  EXPECT_EQ(cache_file("/somewhere", "convolution: {cache: here.txt}\n"), "here.txt");
  ::unsetenv("XDG_CACHE_HOME");
}

TEST(Config, ReportsAllErrorsTogether) {
  EXPECT_EQ(complaint_about("version: 1\n"
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
            "      |                ^~~ write true\n"
            "4 errors; nothing was run.");
}

TEST(Config, ValidatesEachSection) {
  const auto with = [](const std::string& line) { return complaint_about(smallest_config + line); };
  EXPECT_TRUE(holds(with("sed: 3\n"), "unknown key 'sed'")) << with("sed: 3\n");
  EXPECT_TRUE(holds(with("sed: 3\n"), "did you mean 'seed'?"));
  EXPECT_TRUE(holds(with("device: cdua\n"), "'device' must be auto, cpu, cuda or cuda:N, found \"cdua\""));
  EXPECT_TRUE(holds(with("seed: -1\n"), "'seed' must be a whole number of at least 0, found \"-1\""));
  EXPECT_TRUE(holds(with("data: {wurkers: 2}\n"), "unknown key 'wurkers' in 'data'"));
  EXPECT_TRUE(holds(with("data: {on_error: skipp}\n"), "did you mean 'skip'?"));
  EXPECT_TRUE(holds(with("data: 5\n"), "'data' must be a mapping of keys to values, found \"5\""));
  EXPECT_TRUE(holds(with("precision: fp8\n"), "'precision' must be one of fp32, tf32, bf16, fp16, found \"fp8\""));
  EXPECT_TRUE(holds(with("precision: bf16\nconvolution: {precision: tf32}\n"),
                    "'convolution.precision' differs from 'precision: bf16'"));
  EXPECT_TRUE(holds(with("train: {loss_scale: 128}\n"), "'loss_scale' needs 'precision: fp16'; this is fp32"));
  EXPECT_TRUE(holds(with("precision: fp16\ntrain: {loss_scale: 0.5}\n"), "a number from 1 to 16777216, found \"0.5\""));
  EXPECT_TRUE(holds(with("convolution: {workspace_limit: lots}\n"), "a size such as 512MiB or 2GiB, found \"lots\""));
  EXPECT_TRUE(holds(with("train: {batch_size: 0}\n"), "a whole number from 1 to 1048576, found \"0\""));
  EXPECT_TRUE(holds(with("train: {optimizer: sdg}\n"), "unknown optimizer 'sdg'; did you mean 'sgd'?"));
  EXPECT_TRUE(holds(with("train: {optimizer: {sgd: {}, adam: {}}}\n"), "'optimizer' must be a name, or one name"));
  EXPECT_TRUE(holds(with("train: {schedule: cosin}\n"), "unknown schedule 'cosin'; did you mean 'cosine'?"));
  EXPECT_TRUE(
      holds(with("deterministic: true\nconvolution: {engine: measured}\n"), "excludes engines that are measured"));
}

TEST(Config, NeedsVersionAndModel) {
  EXPECT_EQ(complaint_about("name: x\n"),
            "a.yaml:1:1: error: missing key 'version'\n"
            "    1 | name: x\n"
            "      | ^ write 'version: 1'\n"
            "a.yaml:1:1: error: missing key 'model'\n"
            "    1 | name: x\n"
            "      | ^ 'model: {input: [channels, height, width], layers: [...]}'\n"
            "2 errors; nothing was run.");
  EXPECT_TRUE(holds(complaint_about("version: 2\n"), "this program reads version 1 of the format, found 2"));
  EXPECT_TRUE(holds(complaint_about("version: 1\nmodel: {input: [8], layers: []}\n"),
                    "[channels, height, width], found 1 number\n"));
  EXPECT_TRUE(holds(complaint_about("version: 1\nmodel: {input: [1, 8, 8], layers: []}\n"),
                    "'layers' must be a list of layers"));
  EXPECT_TRUE(
      holds(complaint_about("version: 1\nmodel: {input: [60000, 60000, 60000], layers: [relu]}\n"), "has more than"));
  EXPECT_TRUE(holds(complaint_about("version: 1\nmodel:\n"), "missing key 'layers' in 'model'"));
}

}  // namespace
}  // namespace twiddle
