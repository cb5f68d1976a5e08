#pragma once
#include <memory>

#include "data/loader.h"
#include "models/config.h"

namespace twiddle {

// The data section of a config, opened: datasets and the steps from an image to a network's input.
struct OpenData {
  std::unique_ptr<Dataset> train, val;  // null where the section has none
  std::unique_ptr<Augment> train_augment, val_augment;
};

// Opens what the config names. `outputs` is the number of classes that the model tells apart; data with more is an
// error. Errors in the section: one Error of kind config with a block each; missing or damaged files: an Error of kind
// data.
OpenData open_data(const Config& config, std::int64_t outputs);

// The same without the training data, which a trained network no longer needs: nothing of it is opened.
OpenData open_val_data(const Config& config, std::int64_t outputs);

// Puts down what is wrong in the section without opening a file, and returns what datasets and steps read of it, every
// key as it is used; load_config does so. Nothing is held against the model's input where the config has none.
ConfigNode check_data(const Config& config, Diagnostics& diagnostics);

// Only the steps for validation and prediction: no file is opened.
std::unique_ptr<Augment> open_val_augment(const Config& config);

}  // namespace twiddle
