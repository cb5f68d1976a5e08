#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/optimizers/optimizer.h"
#include "models/builder.h"
#include "models/config/config.h"
#include "models/config/data_section.h"
#include "models/loss.h"

namespace twiddle {

class Measuring;

// A config, read once, and what is built from it while it is read, so that all of its errors are reported together.
// Nothing is allocated on a device yet, and no dataset is opened.
struct Experiment {
  Config config;
  Device device;  // the config's; it need not be present
  Model model;
  std::unique_ptr<Loss> loss;
  std::unique_ptr<Optimizer> optimizer;
  DataSection data;
};

// Tensors of the size of the trained parameters that a run keeps in addition to weights and gradients: the optimizer's
// state, gradients accumulated over several batches, and the average of the weights. Each of several ranks keeps only
// its shard of the optimizer's state.
double kept_tensors(const Config::Train& train, const Optimizer& optimizer, int ranks = 1);

// What a program adds to a config.
struct ExperimentOptions {
  std::string origin = {};      // the file that a run folder's config was made from; empty: the file read
  std::string build = {};       // of the program: choices of convolution plans are kept with it
  std::optional<int> gpu = {};  // where the config leaves open which one; else the first
  bool tunes = false;           // measure every convolution, for its own batch
  std::function<void(const std::string&)> warn = {};  // receives warnings about stored choices and about engines
  std::shared_ptr<Measuring> measuring = {};  // receives the progress of measuring convolutions, and may stop it
  SearchProgress search_progress = {};        // receives the progress of the search for images, and may stop it
};

// Reads the file, merges its `base:`, applies the overrides and checks everything that can be checked without opening
// another file: the sections, each layer's options and shapes, the options of optimizer, datasets and augmentation. All
// errors are reported together: an Error of kind config whose text has a block for each.
Experiment load_experiment(const std::string& file, const std::vector<Override>& overrides = {},
                           const ExperimentOptions& options = {});
Experiment load_experiment_text(const std::string& text, const std::string& name,
                                const std::vector<Override>& overrides = {}, const ExperimentOptions& options = {});

}  // namespace twiddle
