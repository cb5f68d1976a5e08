#pragma once
#include <memory>

#include "data/loader.h"
#include "layers/sequential.h"
#include "models/open_data.h"

namespace twiddle {

// What a run learns from and is measured on, and the threads that bring it.
struct TrainingData {
  OpenData data;
  std::unique_ptr<Loader> train, val;  // val: null where the config has none
  bool takes_single_images = true;     // whether a batch of one image can be trained on
};

// An Error of kind config where the config has no training data, or where no batch of it can be trained on. A batch
// norm that gets one value a channel from each image cannot be trained on one image: where the last batch of each epoch
// would have just one, it is left out.
TrainingData open_training_data(const Config& config, const Sequential& net);

}  // namespace twiddle
