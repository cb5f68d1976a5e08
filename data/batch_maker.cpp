#include "data/batch_maker.h"

#include <algorithm>
#include <new>
#include <utility>

#include "data/augmentation/augment.h"
#include "data/formats/dataset.h"
#include "framework/error.h"
#include "framework/random.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// Branches of the seed's tree.
constexpr std::uint64_t shuffle_branch = 0, augment_branch = 1, noise_branch = 2, mixing_branch = 3;

constexpr std::int64_t no_slot = -1;  // of an image that is not in the buffer

// Fisher and Yates, with draws by position: a function of (seed, epoch).
std::vector<std::int64_t> permutation(std::int64_t count, RandomSequence random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) order[static_cast<std::size_t>(i)] = i;
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i, i + 1))]);
  return order;
}

// Labels as rows of shares: where an image may have several, or parts of two.
bool has_shares(const LoaderOptions& options) {
  return options.target == TargetKind::labels || (options.target == TargetKind::label && options.mixing.any());
}

std::int64_t target_values_of(const LoaderOptions& options, std::int64_t image_floats) {
  if (has_shares(options)) return options.outputs;
  return options.target == TargetKind::label ? 1 : image_floats;
}

// So that what a step cuts out of the one, it cuts out of the other.
void expect_one_size(const Image& image, const Image& target) {
  if (target.pixels.empty())
    throw Error(ErrorKind::config, "no image is its target; an image_list has such, in lines 'PATH TARGET_PATH'");
  if (image.height == target.height && image.width == target.width) return;
  throw Error(ErrorKind::config, join("the image is ", image.height, "x", image.width, " and its target ",
                                      target.height, "x", target.width, "; they must be of one size"));
}

}  // namespace

void HostBatch::reserve(Stream& stream, std::int64_t most_images, std::int64_t image_floats,
                        std::int64_t target_values) {
  const auto needed = static_cast<std::size_t>(most_images * (image_floats + target_values)) * 4;
  if (needed > bytes) block = stream.allocate_host(needed), bytes = needed;
  images = static_cast<float*>(block.get());
  targets = images + most_images * image_floats;
}

BatchMaker::BatchMaker(const Dataset& dataset, const Augment& augment, const LoaderOptions& options)
    : dataset_(dataset),
      augment_(augment),
      options_(options),
      image_floats_(count_of(augment.image_shape())),
      target_values_(target_values_of(options, image_floats_)) {
  const auto classes = static_cast<std::int64_t>(dataset.classes().size());
  require(!has_shares(options) || options.outputs >= classes, "rows of ", options.outputs, " shares for ", classes,
          " classes");
  require(!options.mixing.any() || has_shares(options), "images are mixed with their labels, not with other images");
}

Tensor BatchMaker::targets(Stream& stream, std::int64_t count) const {
  if (has_shares(options_)) return Tensor(stream, {count, options_.outputs});
  if (options_.target == TargetKind::label) return Tensor(stream, {count}, DType::i32);
  const Shape& image = augment_.image_shape();
  return Tensor(stream, {count, image[0], image[1], image[2]});
}

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
    batch.reserve(*epoch.stream, most_images(), image_floats_, target_values_);
    Image image;
    std::vector<std::int64_t> slots(static_cast<std::size_t>(end - begin), no_slot);  // by place in the whole batch
    for (std::int64_t i = first_own(begin, end, options_.rank); i < first_own(begin, end, options_.rank + 1); ++i)
      if (add_image(epoch, i, image, batch)) slots[static_cast<std::size_t>(i - begin)] = batch.count - 1;
    if (options_.mixing.any()) mix_images(epoch, begin, end, std::move(slots), batch);
  } catch (...) {
    batch.error = std::current_exception();
  }
}

// The rows of such a batch are distributed in order and as evenly as possible: rank 0 has one where there is any.
std::int64_t BatchMaker::first_own(std::int64_t begin, std::int64_t end, int rank) const {
  return begin + ((end - begin) * rank + options_.ranks - 1) / options_.ranks;
}

// That are in memory at a time: a rank's own and, where those are mixed with others, their partners.
std::int64_t BatchMaker::most_images() const {
  const std::int64_t own = options_.batch_size / options_.ranks;
  return options_.mixing.any() ? std::min(2 * own, options_.batch_size) : own;
}

// Mixes the first image of the global batch with the last, and so on. An image without a partner, or with a bad one,
// stays as it is. A partner that belongs to another rank is read here as well, after the rank's own images, and
// discarded afterwards.
void BatchMaker::mix_images(const Epoch& epoch, std::int64_t begin, std::int64_t end, std::vector<std::int64_t> slots,
                            HostBatch& batch) const {
  const std::int64_t own = batch.count;
  const std::size_t own_bad = batch.bad.size();
  const auto slot_of = [&](std::int64_t place) -> std::int64_t& {
    return slots[static_cast<std::size_t>(place - begin)];
  };
  const auto is_own = [&](std::int64_t place) {
    return place >= first_own(begin, end, options_.rank) && place < first_own(begin, end, options_.rank + 1);
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  Image image;
  for (std::int64_t a = begin, b = end - 1; a < b; ++a, --b) {
    if (!is_own(a) && !is_own(b)) continue;
    for (const std::int64_t place : {a, b})
      if (!is_own(place) && add_image(epoch, place, image, batch)) slot_of(place) = batch.count - 1;
    if (slot_of(a) != no_slot && slot_of(b) != no_slot) pairs.emplace_back(slot_of(a), slot_of(b));
  }
  mix(options_.mixing, sequence(mixing_branch, epoch, begin), pairs, augment_.image_shape(), batch.images,
      target_values_, batch.targets);
  batch.count = own;
  batch.indices.resize(static_cast<std::size_t>(own));
  batch.bad.erase(batch.bad.begin() + static_cast<std::ptrdiff_t>(own_bad), batch.bad.end());  // reported by their rank
}

// Returns separate random numbers for each image of an epoch, or for the batch that begins at that place of its order.
RandomSequence BatchMaker::sequence(std::uint64_t branch, const Epoch& epoch, std::int64_t place) const {
  return RandomSequence{options_.seed, 0}.split(branch).split(epoch.number).split(static_cast<std::uint64_t>(place));
}

// Appends the image at that place of the epoch's order and its target. Returns false if the image is bad, which is
// recorded, or if the epoch is cancelled.
bool BatchMaker::add_image(const Epoch& epoch, std::int64_t place, Image& image, HostBatch& batch) const {
  if (epoch.cancelled.load(std::memory_order_relaxed)) return false;
  const std::int64_t index = epoch.order.empty() ? place : epoch.order[static_cast<std::size_t>(place)];
  Target target;
  try {
    target = dataset_.get(index, image);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    if (!options_.skip_bad)
      throw Error(ErrorKind::data, join(error.what(), "\n  image ", index + 1, " of ", format_count(dataset_.size()),
                                        "; set `on_error: skip` under `data:` to skip such images"));
    batch.bad.push_back({index, error.what()});
    return false;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::device, join(dataset_.where(index), ": out of memory on the host, for reading this image"));
  } catch (const std::exception& error) {
    throw Error(join(dataset_.where(index), ": ", error.what()));
  }
  check_labels(index, target.labels);
  float* const to = batch.images + batch.count * image_floats_;
  try {
    if (options_.target == TargetKind::image) expect_one_size(image, target.image);
    augment_(image, sequence(augment_branch, epoch, index), to);
    write_target(target, sequence(augment_branch, epoch, index), batch);
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::device, join(dataset_.where(index), ": out of memory on the host, for augmenting a ",
                                        image.width, "x", image.height, " image"));
  } catch (const Error& error) {
    throw Error(error.kind(), join(dataset_.where(index), ": ", error.what()));
  }
  const RandomSequence noise = sequence(noise_branch, epoch, index);
  if (options_.noise > 0)
    for (std::int64_t i = 0; i < image_floats_; ++i) to[i] += static_cast<float>(options_.noise) * noise.normal(i);
  ++batch.count;
  batch.indices.push_back(index);
  return true;
}

void BatchMaker::check_labels(std::int64_t index, const std::vector<std::int64_t>& labels) const {
  const auto classes = static_cast<std::int64_t>(dataset_.classes().size());
  for (const std::int64_t label : labels)
    if (label < 0 || label >= classes)
      throw Error(ErrorKind::data, join(dataset_.where(index), ": image ", index, " of the dataset has the label ",
                                        label, ", the dataset names ", classes, " classes, 0 to ", classes - 1));
}

// Writes the target of the image that is being added. A target image gets the same random numbers as its input, so
// that both are rotated, cropped and flipped the same way.
void BatchMaker::write_target(Target& target, RandomSequence random, HostBatch& batch) const {
  float* const to = batch.targets + batch.count * target_values_;
  const float* const image = batch.images + batch.count * image_floats_;
  if (has_shares(options_)) {
    std::fill_n(to, target_values_, 0.0f);
    for (const std::int64_t label : target.labels) to[label] = 1;
  } else if (options_.target == TargetKind::label) {
    reinterpret_cast<std::int32_t*>(to)[0] = static_cast<std::int32_t>(target.label());
  } else if (options_.target == TargetKind::input) {
    std::copy_n(image, image_floats_, to);
  } else {
    augment_.apply_to_target(target.image, random, to);
  }
}

}  // namespace twiddle
