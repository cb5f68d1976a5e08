#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/augmentation/mixing.h"
#include "data/images/image.h"
#include "framework/config/params.h"
#include "framework/optimizers/schedule.h"
#include "framework/tensor.h"
#include "layers/conv/conv_policy.h"
#include "models/config/parameter_patterns.h"

namespace twiddle {

// One experiment, as a YAML file and the command line describe it.
struct Config {
  std::string file, name;  // name: `name:` or the file's stem
  std::string device = "auto";
  int threads = 0;  // 0: as many as the machine has
  std::uint64_t seed = 1;
  bool deterministic = false;
  Shape input;             // channels, height, width
  ConfigNode layers;       // a list that expand_layers() (layer_list.h) has written out
  ConvPolicy convolution;  // engine: empty where the config leaves it open

  struct Data {
    bool present = false;  // the config has the section
    int workers = 2;
    bool skip_bad = false;
    std::int64_t max_pixels = usual_max_pixels;
    bool orient = true;      // images by their EXIF orientation
    bool drop_last = false;  // a training epoch ends with its last full batch
  } data;

  struct Train {
    double learning_rate = 0.01;
    Schedule schedule;
    std::int64_t epochs = 10, batch_size = 64;
    std::int64_t accumulate = 1;  // batches an update
    double ema_decay = 0;         // of the moving average of the weights; 0: none is kept
    bool ema_warmup = false;      // the decay is smaller in the first updates
    std::vector<ParameterPattern> freeze, learning_rates;
    double clip_norm = 0;   // 0: off
    double loss_scale = 0;  // 0: adapts in fp16; else there is none
    Mixing mixing;
    std::string watch = "auto";         // the metric that the best epoch is chosen by
    std::int64_t patience = 0;          // epochs without a better one after which training stops; 0: never stops
    double min_delta = 0;               // what is better by no more than this does not count for patience
    std::int64_t keep = 3;              // newest checkpoints kept
    std::int64_t checkpoint_every = 0;  // steps between checkpoints inside an epoch; 0: at the end of each epoch alone
    std::string out = "runs";           // where run folders are made
    double collective_timeout = 45;     // seconds that all ranks may wait for their GPUs; 0: no limit
  } train;

  // Every key as it is used: base merged, overrides applied, defaults written out, paths absolute. What the run folder
  // keeps: another program's defaults, or another current folder, do not change it.
  ConfigNode tree;
  ConfigNode tree_of_file;  // base merged and layers named, but before overrides and defaults
};

// The values of a config, without what load_experiment (experiment.h) builds from it. What is wrong goes to the
// diagnostics. The first reads all but the sections `data` and `train`; these two leave the section's finish() to the
// caller, who reads the rest of it.
Config read_config(Params& root, const std::string& file);
Config::Data read_data(Params& data);
Config::Train read_train(Params& train);

// `--set train.epochs=3` and the flags that stand for such keys, in the order given; `from` is named in messages
// ("--epochs"). The value is YAML, as in the file, or a literal string: a path or a name.
struct Override {
  std::string key, value, from;
  bool is_text = false;
};

// YAML that reads back to the same tree.
std::string to_yaml(const ConfigNode& node);

}  // namespace twiddle
