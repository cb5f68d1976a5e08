#pragma once
#include <memory>

#include "data/augment.h"
#include "data/dataset.h"
#include "models/experiment.h"

namespace twiddle {

// The data section of a config, opened: datasets and the steps from an image to a network's input.
struct OpenData {
  std::unique_ptr<Dataset> train, val;  // null where the section has none
  std::shared_ptr<const Augment> train_augment, val_augment;
};

// Opens what the config names. Data with more classes than the model has outputs is an Error of kind config; missing or
// damaged files are an Error of kind data.
OpenData open_data(const Experiment& experiment);

// The same without the training data, which a trained network no longer needs: nothing of it is opened.
OpenData open_val_data(const Experiment& experiment);

}  // namespace twiddle
