#include "data/batch_maker.h"

#include <algorithm>
#include <utility>

#include "framework/text.h"

namespace twiddle {

namespace {

// Branches of the seed's tree.
constexpr std::uint64_t shuffle_branch = 0, augment_branch = 1;

// Fisher and Yates, with draws by position: a function of (seed, epoch).
std::vector<std::int64_t> permutation(std::int64_t count, RandomSequence random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i, i + 1))]);
  return order;
}

}  // namespace

void HostBatch::make_room(Stream& stream, std::int64_t most_images, std::int64_t image_floats) {
  const auto needed = static_cast<std::size_t>(most_images * (image_floats + 1)) * 4;
  if (needed > bytes) block = stream.allocate_host(needed), bytes = needed;
  images = static_cast<float*>(block.get());
  labels = reinterpret_cast<std::int32_t*>(images + most_images * image_floats);
}

BatchMaker::BatchMaker(const Dataset& dataset, const Augment& augment, const LoaderOptions& options)
    : dataset_(dataset), augment_(augment), options_(options), image_floats_(count_of(augment.image_shape())) {}

std::int64_t BatchMaker::batches_of(std::int64_t images) const {
  return options_.drop_last ? images / options_.batch_size : (images + options_.batch_size - 1) / options_.batch_size;
}

std::shared_ptr<Epoch> BatchMaker::epoch(Stream& stream, std::int64_t number, std::int64_t first_image) const {
  auto epoch = std::make_shared<Epoch>();
  epoch->stream = &stream;
  epoch->number = static_cast<std::uint64_t>(number);
  if (options_.shuffle)
    epoch->order =
        permutation(dataset_.size(), RandomSequence{options_.seed, 0}.split(shuffle_branch).split(epoch->number));
  epoch->first_image = std::min(first_image, dataset_.size());
  epoch->batches = batches_of(dataset_.size() - epoch->first_image);
  return epoch;
}

void BatchMaker::make(const Epoch& epoch, std::int64_t number, HostBatch& batch) const {
  const std::int64_t begin = epoch.first_image + number * options_.batch_size;
  const std::int64_t end = std::min(begin + options_.batch_size, dataset_.size());
  batch.count = 0, batch.indices.clear(), batch.bad.clear(), batch.error = nullptr;
  try {
    batch.make_room(*epoch.stream, options_.batch_size, image_floats_);
    Image image;
    for (std::int64_t i = begin; i < end && !epoch.cancelled.load(std::memory_order_relaxed); ++i)
      add_image(epoch, epoch.order.empty() ? i : epoch.order[static_cast<std::size_t>(i)], image, batch);
  } catch (...) {
    batch.error = std::current_exception();
  }
}

// Appends an image, or what is wrong with it.
void BatchMaker::add_image(const Epoch& epoch, std::int64_t index, Image& image, HostBatch& batch) const {
  std::int64_t label = 0;
  try {
    label = dataset_.get(index, image);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    if (!options_.skip_bad)
      throw Error(ErrorKind::data, join(error.what(), "\n  image ", index + 1, " of ", format_count(dataset_.size()),
                                        "; set `on_error: skip` under `data:` to go on without such images"));
    batch.bad.push_back({index, error.what()});
    return;
  } catch (const std::exception& error) {
    throw Error(join(dataset_.where(index), ": ", error.what()));
  }
  const auto classes = static_cast<std::int64_t>(dataset_.classes().size());
  if (label < 0 || label >= classes)
    throw Error(ErrorKind::data, join(dataset_.where(index), ": image ", index, " of the dataset has the label ", label,
                                      ", the dataset names ", classes, " classes, 0 to ", classes - 1));
  const RandomSequence random = RandomSequence{options_.seed, 0}
                                    .split(augment_branch)
                                    .split(epoch.number)
                                    .split(static_cast<std::uint64_t>(index));
  try {
    augment_(image, random, batch.images + batch.count * image_floats_);
  } catch (const Error& error) {
    throw Error(error.kind(), join(dataset_.where(index), ": ", error.what()));
  }
  batch.labels[batch.count++] = static_cast<std::int32_t>(label);
  batch.indices.push_back(index);
}

}  // namespace twiddle
