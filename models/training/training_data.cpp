#include "models/training/training_data.h"

#include <algorithm>

#include "data/formats/dataset.h"
#include "framework/error.h"
#include "framework/ranks/pack.h"
#include "layers/batch_norm.h"
#include "layers/sequential.h"
#include "models/config/config.h"
#include "models/config/experiment.h"
#include "models/evaluation/evaluate.h"
#include "models/loss.h"

namespace twiddle {

namespace {

// After a linear layer or a global pool: one value alone has no variance. A frozen batch norm needs none.
bool sees_one_value_an_image(const BatchNorm& norm) {
  const bool is_frozen = std::none_of(norm.parameters().begin(), norm.parameters().end(),
                                      [](const Parameter& parameter) { return parameter.trainable; });
  return !is_frozen && count_of(norm.output_shape()) == norm.output_shape().at(0);
}

LeastImages least_images(const Config& config, const Sequential& net, std::int64_t images, int ranks) {
  LeastImages least;
  for (const Sequential::Item* item : net.all_items()) {
    const auto* const norm = dynamic_cast<const BatchNorm*>(item->layer.get());
    if (norm == nullptr || !sees_one_value_an_image(*norm)) continue;
    least.of_batch = 2;
    if (!norm->sync()) least.of_rank = 2;
    if (config.train.batch_size >= std::max(least.of_batch, least.of_rank * ranks) && images >= least.of_batch)
      continue;
    const std::string on_ranks = ranks > 1 ? join(" for ", ranks, " ranks") : "";
    throw Error(ErrorKind::config,
                join(to_string(item->place), ": batch_norm '", item->layer->name(),
                     "' gets one value a channel from each image and needs two images a batch to train; ",
                     images > 1 ? join("train.batch_size is ", config.train.batch_size, on_ranks, ": make it ",
                                       2 * ranks, " or more")
                                : "the training data has one image"));
  }
  return least;
}

}  // namespace

LoaderOptions loader_options(const Experiment& experiment) {
  const Config& config = experiment.config;
  LoaderOptions options;
  options.batch_size = config.train.batch_size;
  options.workers = config.data.workers;
  options.skip_bad = config.data.skip_bad;
  options.seed = config.seed;
  options.target = experiment.loss->target();
  options.outputs = experiment.model.net->output_shape().at(0);
  options.noise = experiment.loss->noise();
  return options;
}

LoaderOptions training_options(const Experiment& experiment, std::int64_t images, int ranks) {
  const Config& config = experiment.config;
  const LeastImages least = least_images(config, *experiment.model.net, images, ranks);
  const std::int64_t last = images % config.train.batch_size;
  const bool last_is_too_small = last > 0 && last < (least.of_rank > 1 ? least.of_rank * ranks : least.of_batch);
  LoaderOptions options = loader_options(experiment);
  options.ranks = ranks;
  options.shuffle = true;
  options.mixing = config.train.mixing;
  options.drop_last = config.data.drop_last || last_is_too_small;
  return options;
}

std::size_t evaluation_in_plan(const Experiment& experiment, const Dataset* val) {
  if (val == nullptr || experiment.device.kind != Device::Kind::cpu) return 0;
  return evaluation_bytes(experiment.loss->target(), experiment.config.train.batch_size,
                          experiment.model.net->output_shape(), val->size());
}

TrainingData::TrainingData(const Experiment& experiment, Communicator& ranks)
    : ranks_(ranks), data_(open_data(experiment)) {
  const Config& config = experiment.config;
  if (data_.train == nullptr) throw Error(ErrorKind::config, config.file + ": training needs data.train");
  least_ = least_images(config, *experiment.model.net, data_.train->size(), ranks.size());
  make_loaders(experiment);
}

void TrainingData::map_classes(const Experiment& experiment, const NetworkClasses& network) {
  twiddle::map_classes(experiment, network, data_);
  make_loaders(experiment);
}

void TrainingData::make_loaders(const Experiment& experiment) {
  LoaderOptions options = loader_options(experiment);
  options.rank = ranks_.rank(), options.ranks = ranks_.size();
  if (data_.val) val_ = std::make_unique<Loader>(*data_.val, *data_.val_augment, options);
  options = training_options(experiment, data_.train->size(), ranks_.size());
  options.rank = ranks_.rank();
  train_ = std::make_unique<Loader>(*data_.train, *data_.train_augment, options);
}

void TrainingData::start_epoch(Stream& stream, std::int64_t epoch, std::int64_t first_image) {
  if (untouched_epoch_ == epoch && first_image == 0) return;
  train_->start_epoch(stream, epoch, first_image);
  images_of_epoch_ = first_image;
  wait_seconds_.clear();
  untouched_epoch_ = first_image == 0 ? epoch : -1;
}

bool TrainingData::next(Batch& batch) {
  untouched_epoch_ = -1;
  do {
    if (!next_of_ranks(batch)) return false;
  } while (has_too_few_);
  return true;
}

bool TrainingData::next_of_ranks(Batch& batch) {
  if (ranks_.size() > 1) return next_shared(batch);
  const bool more = train_->next(batch);
  wait_seconds_ = {train_->wait_seconds()};
  if (!more) return false;
  has_too_few_ = batch.rows_here() < least_.of_batch;
  return true;
}

// Returns the next batch of which any rank has a row. Each rank sends its number of rows, so that all know their
// positions in the global batch, and how long it has waited for images.
bool TrainingData::next_shared(Batch& batch) {
  bool more = false;
  do {
    batch = {};
    const std::vector<std::string> gathered = gather_or_fail(ranks_, [&] {
      more = train_->next(batch);
      return pack(batch.rows_here(), train_->wait_seconds());
    });
    has_too_few_ = false;
    wait_seconds_.assign(gathered.size(), 0);
    for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
      const auto [rows, seconds] = unpack<std::int64_t, double>(gathered[rank]);
      wait_seconds_[rank] = seconds;
      if (static_cast<int>(rank) == ranks_.rank()) batch.rows.first = batch.rows.all;
      batch.rows.all += rows;
      batch.rows.on_every_rank = batch.rows.on_every_rank && rows > 0;
      has_too_few_ = has_too_few_ || (rows > 0 && rows < least_.of_rank);
    }
    has_too_few_ = has_too_few_ || batch.rows.all < least_.of_batch;
    images_of_epoch_ += batch.rows.all;
  } while (more && batch.rows.all == 0);
  if (!more && images_of_epoch_ == 0)
    throw Error(ErrorKind::data,
                join("not one image could be read: all of ", data_.train->describe(), " were skipped"));
  return more;
}

DataWait TrainingData::wait_within(double seconds) const {
  DataWait wait{wait_seconds_};
  // Ranks begin an epoch at slightly different times, and `seconds` are those of the one that asks.
  for (double& share : wait.shares) share = std::min(share / seconds, 1.0);
  return wait;
}

std::int64_t TrainingData::skipped() const {
  if (ranks_.size() > 1) return std::ssize(skipped_by_ranks_);
  return train_->skipped() + (val_ ? val_->skipped() : 0);
}

// An image may be another rank's in each epoch: it counts once.
void TrainingData::ask_ranks_for_skipped() {
  if (ranks_.size() == 1) return;
  messages_of_ranks_.clear();
  for (const std::string& text : ranks_.gather(skipped_here())) {
    const auto [images, messages] = unpack<std::vector<std::string>, std::vector<std::string>>(text);
    skipped_by_ranks_.insert(images.begin(), images.end());
    for (const std::string& message : messages)
      if (std::find(messages_of_ranks_.begin(), messages_of_ranks_.end(), message) == messages_of_ranks_.end())
        messages_of_ranks_.push_back(message);
  }
}

std::string TrainingData::skipped_here() const {
  std::vector<std::string> images;
  for (const std::int64_t index : train_->skipped_indices()) images.push_back(join("train ", index));
  if (val_)
    for (const std::int64_t index : val_->skipped_indices()) images.push_back(join("val ", index));
  return pack(images, messages_here());
}

std::vector<std::string> TrainingData::skipped_messages() const {
  return ranks_.size() > 1 ? messages_of_ranks_ : messages_here();
}

std::vector<std::string> TrainingData::messages_here() const {
  std::vector<std::string> messages = train_->skipped_messages();
  if (val_)
    for (const std::string& message : val_->skipped_messages()) messages.push_back(message);
  return messages;
}

}  // namespace twiddle
