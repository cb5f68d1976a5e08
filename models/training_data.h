#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/loader.h"
#include "models/open_data.h"

namespace twiddle {

// How the images of an experiment are read, in batches of the config's size, for what its loss compares.
LoaderOptions loader_options(const Experiment& experiment);

// What a run learns from and is measured on, and the threads that bring it.
class TrainingData {
 public:
  // An Error of kind config where the config has no training data, or where no batch of it can be trained on. A batch
  // norm that gets one value a channel from each image cannot be trained on one image: where the last batch of each
  // epoch would have just one, it is left out.
  explicit TrainingData(const Experiment& experiment);

  const OpenData& data() const { return data_; }
  Loader& train() { return *train_; }
  const Loader& train() const { return *train_; }
  Loader* val() { return val_.get(); }  // null where the config has none
  const Loader* val() const { return val_.get(); }

  // The workers begin to make the batches of an epoch, unless they do so already and none has been taken.
  void start_epoch(Stream& stream, std::int64_t epoch, std::int64_t first_image);
  bool next(Batch& batch);  // of the epoch, one that can be trained on; false: it has no more

  std::int64_t skipped() const;                       // different images left out, of both sets
  std::vector<std::string> skipped_messages() const;  // of the first few of them

 private:
  OpenData data_;
  bool takes_single_images_ = true;  // whether a batch of one image can be trained on
  std::unique_ptr<Loader> train_, val_;
  std::int64_t untouched_epoch_ = -1;  // whose batches the workers make, and of which none was taken; -1: none
};

}  // namespace twiddle
