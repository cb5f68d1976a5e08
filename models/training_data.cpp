#include "models/training_data.h"

#include "framework/error.h"

namespace twiddle {

namespace {

LoaderOptions loader_options(const Config& config) {
  LoaderOptions options;
  options.batch_size = config.train.batch_size;
  options.workers = config.data.workers;
  options.skip_bad = config.data.skip_bad;
  options.seed = config.seed;
  return options;
}

// Behind a linear layer or a global pool: one value alone has no variance.
bool sees_one_value_an_image(const Sequential::Item& item) {
  const Shape& shape = item.layer->output_shape();
  return item.kind == "batch_norm" && count_of(shape) == shape.at(0);
}

bool takes_single_images(const Config& config, const Sequential& net, std::int64_t images) {
  for (std::size_t i = 0; i < net.items().size(); ++i) {
    const Sequential::Item& item = net.items()[i];
    if (!sees_one_value_an_image(item)) continue;
    if (config.train.batch_size > 1 && images > 1) return false;
    throw Error(ErrorKind::config,
                join(to_string(config.layers.at(i).place), ": batch_norm '", item.layer->name(),
                     "' gets one value a channel from each image and needs two images a batch to train; ",
                     images > 1 ? "train.batch_size is 1: make it 2 or more" : "the training data has one image"));
  }
  return true;
}

}  // namespace

TrainingData open_training_data(const Config& config, const Sequential& net) {
  TrainingData opened{open_data(config, net.output_shape().at(0)), nullptr, nullptr};
  const OpenData& data = opened.data;
  if (data.train == nullptr) throw Error(ErrorKind::config, config.file + ": training needs data.train");
  opened.takes_single_images = takes_single_images(config, net, data.train->size());
  LoaderOptions options = loader_options(config);
  if (data.val) opened.val = std::make_unique<Loader>(*data.val, *data.val_augment, options);
  const bool last_is_single = data.train->size() % config.train.batch_size == 1;
  options.shuffle = true;
  options.drop_last = config.data.drop_last || (last_is_single && !opened.takes_single_images);
  opened.train = std::make_unique<Loader>(*data.train, *data.train_augment, options);
  return opened;
}

}  // namespace twiddle
