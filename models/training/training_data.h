#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "data/loader.h"
#include "framework/ranks/communicator.h"
#include "models/training/data_wait.h"
#include "models/training/open_data.h"

namespace twiddle {

// How the images of an experiment are read, in batches of the config's size, for what its loss compares.
LoaderOptions loader_options(const Experiment& experiment);
// The same for training on the given number of images and ranks. An Error of kind config if no batch can be trained on.
// A batch norm that gets one value a channel from each image cannot be trained on one image: if the last batch of each
// epoch would have just one, or one for one of the ranks that share it, it is left out.
LoaderOptions training_options(const Experiment& experiment, std::int64_t images, int ranks = 1);

// What an evaluation of the data adds to a plan of the device's memory: on a GPU nothing, its counts are in host
// memory.
std::size_t evaluation_in_plan(const Experiment& experiment, const Dataset* val);

// Images that a training batch must have in all, and that each of its ranks must have which has some.
struct LeastImages {
  std::int64_t of_batch = 1, of_rank = 1;
};

// What a run learns from and is measured on, and the threads that bring it.
class TrainingData {
 public:
  // An Error of kind config if the config has no training data, or as training_options().
  TrainingData(const Experiment& experiment, Communicator& ranks);

  const OpenData& data() const { return data_; }
  // As map_classes() of open_data.h. Before the first epoch.
  void map_classes(const Experiment& experiment, const NetworkClasses& network);
  Loader& train() { return *train_; }
  const Loader& train() const { return *train_; }
  Loader* val() { return val_.get(); }  // null where the config has none
  const Loader* val() const { return val_.get(); }

  // Starts the workers on the batches of an epoch, unless they already make them and next() has returned none.
  void start_epoch(Stream& stream, std::int64_t epoch, std::int64_t first_image);
  // Gets the epoch's next batch that can be trained on; false: there are no more. An image that one rank cannot read is
  // an Error on all.
  bool next(Batch& batch);

  // The time that ranks have waited for images of the epoch until its latest batch, as a fraction of the given seconds.
  DataWait wait_within(double seconds) const;

  // Different images left out, of both sets, and messages of the first few of them; those of other ranks as of the last
  // time that all asked.
  void ask_ranks_for_skipped();
  std::int64_t skipped() const;
  std::vector<std::string> skipped_messages() const;

 private:
  void make_loaders(const Experiment& experiment);
  bool next_of_ranks(Batch& batch);
  bool next_shared(Batch& batch);
  std::string skipped_here() const;
  std::vector<std::string> messages_here() const;

  Communicator& ranks_;
  OpenData data_;
  LeastImages least_;
  bool has_too_few_ = false;  // the latest batch
  std::int64_t images_of_epoch_ = 0;
  std::vector<double> wait_seconds_;        // by rank
  std::set<std::string> skipped_by_ranks_;  // by set and number
  std::vector<std::string> messages_of_ranks_;
  std::unique_ptr<Loader> train_, val_;
  std::int64_t untouched_epoch_ = -1;  // whose batches the workers make, and of which next() returned none; -1: none
};

}  // namespace twiddle
