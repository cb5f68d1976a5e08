#include "models/config/experiment.h"

#include <cstdlib>
#include <filesystem>

#include "tests/models/config_text.h"

namespace twiddle {
namespace {

TEST(Experiment, NeedsVariablesOfOpenedDatasetsOnly) {
  ::unsetenv("TWIDDLE_TEST_UNSET");
  const Experiment experiment =
      load_experiment_text(smallest_config +
                               "data:\n"
                               "  train: {format: idx, images: \"${TWIDDLE_TEST_UNSET}/a.gz\", labels: b.gz}\n"
                               "  val: {format: synthetic}\n",
                           "a.yaml");
  EXPECT_NO_THROW(experiment.data.val.open());
  try {
    experiment.data.train.open();
    ADD_FAILURE() << "was opened";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_TRUE(holds(error.what(), "a.yaml:8:10: environment variable 'TWIDDLE_TEST_UNSET' is not set"))
        << error.what();
  }
}

TEST(Experiment, ResolvedTreeRoundTrips) {
  const Config config = config_of(smallest_config + "train: {optimizer: {sgd: {momentum: 0.9}}, out: \"10\"}\n",
                                  {{"model.layers.fc1.bias", "false", "--set"}});
  const std::string written = to_yaml(config.tree);
  const Config again = load_experiment_text(written, "elsewhere/config.yaml").config;
  EXPECT_EQ(to_yaml(again.tree), written);
  EXPECT_EQ(again.name, "a");
  EXPECT_EQ(names_of_layers(again), names_of_layers(config));
  EXPECT_EQ(layer_at(again.layers, 1).value.find("bias")->text, "false");
}

// A program with other defaults reads the same run.
TEST(Experiment, TreeHoldsEveryUsedKey) {
  const Config config = config_of(
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
    - linear: {name: fc1, outputs: 10, bias: true, init: {gaussian: 0.01}, bias_init: 0, lr: 1, bias_lr: 1}
convolution:
  engine: auto
  workspace_limit: 4GiB
  frequency_budget: 4GiB
  cache: auto
  retune: false
precision: fp32
data:
  workers: 2
  on_error: fail
  max_pixels: 67108864
  orient: true
  drop_last: false
  train: {format: synthetic, images: 1024, seed: 1, first: 0}
  augment:
    - hflip: 0.5
    - pad_crop: {pad: 2, size: 32}
train:
  loss: {cross_entropy: {label_smoothing: 0}}
  optimizer: {sgd: {momentum: 0, weight_decay: 0, nesterov: false}}
  learning_rate: 0.01
  schedule: {step: {warmup: 0, warmup_start: 0.01, every: 2, gamma: 0.1}}
  epochs: 10
  batch_size: 64
  accumulate: 1
  clip_norm: 0
  loss_scale: auto
  mixup: 0
  cutmix: 0
  watch: auto
  keep: 3
  checkpoint_every: 0
  out: runs
  collective_timeout: 45
)");
}

TEST(Experiment, TreeOmitsMissingData) {
  EXPECT_EQ(config_of(smallest_config).tree.find("data"), nullptr);
}

TEST(Experiment, LoadsEveryShippedModel) {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator("models")) {
    if (entry.path().extension() != ".yaml") continue;
    ++models;
    const Config config = load_experiment(entry.path().string()).config;
    EXPECT_EQ(config.name, entry.path().stem());
    EXPECT_TRUE(config.data.present) << entry.path();
    EXPECT_EQ(to_yaml(load_experiment_text(to_yaml(config.tree), "config.yaml").config.tree), to_yaml(config.tree));
  }
  EXPECT_EQ(models, 19);
}

}  // namespace
}  // namespace twiddle
