#include "models/training_data.h"

#include <algorithm>

#include "framework/error.h"

namespace twiddle {

namespace {

// Behind a linear layer or a global pool: one value alone has no variance. A frozen one asks for none.
bool sees_one_value_an_image(const Sequential::Item& item) {
  const Shape& shape = item.layer->output_shape();
  const std::deque<Parameter>& parameters = item.layer->parameters();
  const auto is_trained = [](const Parameter& parameter) { return parameter.trainable; };
  return item.kind == "batch_norm" && std::any_of(parameters.begin(), parameters.end(), is_trained) &&
         count_of(shape) == shape.at(0);
}

bool takes_single_images(const Config& config, const Sequential& net, std::int64_t images) {
  for (const Sequential::Item* item : net.all_items()) {
    if (!sees_one_value_an_image(*item)) continue;
    if (config.train.batch_size > 1 && images > 1) return false;
    throw Error(ErrorKind::config,
                join(to_string(item->place), ": batch_norm '", item->layer->name(),
                     "' gets one value a channel from each image and needs two images a batch to train; ",
                     images > 1 ? "train.batch_size is 1: make it 2 or more" : "the training data has one image"));
  }
  return true;
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

TrainingData::TrainingData(const Experiment& experiment) : data_(open_data(experiment)) {
  const Config& config = experiment.config;
  if (data_.train == nullptr) throw Error(ErrorKind::config, config.file + ": training needs data.train");
  takes_single_images_ = takes_single_images(config, *experiment.model.net, data_.train->size());
  LoaderOptions options = loader_options(experiment);
  if (data_.val) val_ = std::make_unique<Loader>(*data_.val, *data_.val_augment, options);
  const bool last_is_single = data_.train->size() % config.train.batch_size == 1;
  options.shuffle = true;
  options.mixing = config.train.mixing;
  options.drop_last = config.data.drop_last || (last_is_single && !takes_single_images_);
  train_ = std::make_unique<Loader>(*data_.train, *data_.train_augment, options);
}

void TrainingData::start_epoch(Stream& stream, std::int64_t epoch, std::int64_t first_image) {
  if (untouched_epoch_ == epoch && first_image == 0) return;
  train_->start_epoch(stream, epoch, first_image);
  untouched_epoch_ = first_image == 0 ? epoch : -1;
}

bool TrainingData::next(Batch& batch) {
  untouched_epoch_ = -1;
  do {
    if (!train_->next(batch)) return false;
  } while (batch.images.dim(0) == 1 && !takes_single_images_);
  return true;
}

std::int64_t TrainingData::skipped() const {
  return train_->skipped() + (val_ ? val_->skipped() : 0);
}

std::vector<std::string> TrainingData::skipped_messages() const {
  std::vector<std::string> messages = train_->skipped_messages();
  if (val_)
    for (std::string& message : val_->skipped_messages()) messages.push_back(std::move(message));
  return messages;
}

}  // namespace twiddle
