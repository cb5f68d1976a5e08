#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "data/augmentation/mixing.h"
#include "data/formats/dataset.h"
#include "framework/random.h"
#include "framework/tensor.h"

namespace twiddle {

class Augment;

struct LoaderOptions {
  std::int64_t batch_size = 64;
  int rank = 0, ranks = 1;  // where ranks share each batch, the loader brings the rows of one; batch_size counts all
  int workers = 2;          // threads that decode and augment; 0: the caller's thread does it
  int prefetch = 2;         // batches ready ahead of the step, in addition to the one that each worker is making
  bool shuffle = false;     // a new order each epoch, a function of (seed, epoch)
  bool drop_last = false;   // an epoch ends with the last full batch
  bool skip_bad = false;    // on_error: skip: a bad image is left out and counted; otherwise it is an error
  std::uint64_t seed = 1;
  TargetKind target = TargetKind::label;
  std::int64_t outputs = 0;  // classes in a row of shares
  double noise = 0;          // standard deviation of what is added to the images, after the targets were made
  Mixing mixing = {};        // of images and labels; targets are rows of shares then
};

// One pass over the dataset, fixed when it starts.
struct Epoch {
  Stream* stream = nullptr;
  std::uint64_t number = 0;
  std::vector<std::int64_t> order;  // empty: 0, 1, 2 ...
  std::int64_t first_image = 0, batches = 0;
  std::atomic<bool> cancelled{false};
};

struct BadImage {
  std::int64_t index;
  std::string message;
};

// A batch on the host: its images, and after them the targets, lie in memory that copies to the device run from.
struct HostBatch {
  std::shared_ptr<void> block;
  std::size_t bytes = 0;
  float *images = nullptr, *targets = nullptr;  // labels, of four bytes each as well, are written as such
  std::int64_t count = 0;
  std::vector<std::int64_t> indices;
  std::vector<BadImage> bad;
  std::exception_ptr error;

  void reserve(Stream& stream, std::int64_t most_images, std::int64_t image_floats, std::int64_t target_values);
};

// Makes batches on the host, on any thread: what one holds is a function of the seed, the epoch and its number.
class BatchMaker {
 public:
  BatchMaker(const Dataset& dataset, const Augment& augment, const LoaderOptions& options);
  std::shared_ptr<Epoch> epoch(Stream& stream, std::int64_t number, std::int64_t first_image) const;
  std::int64_t batches_of(std::int64_t images) const;
  // The epoch's batch of that number, into a buffer to use again. Whatever goes wrong is put into the batch: it is the
  // caller of Loader::next() that must get it.
  void make(const Epoch& epoch, std::int64_t number, HostBatch& batch) const;
  Tensor targets(Stream& stream, std::int64_t count) const;  // with space for those of `count` images

 private:
  std::int64_t first_own(std::int64_t begin, std::int64_t end, int rank) const;
  std::int64_t most_images() const;
  bool add_image(const Epoch& epoch, std::int64_t place, Image& image, HostBatch& batch) const;
  void mix_images(const Epoch& epoch, std::int64_t begin, std::int64_t end, std::vector<std::int64_t> slots,
                  HostBatch& batch) const;
  RandomSequence sequence(std::uint64_t branch, const Epoch& epoch, std::int64_t place) const;
  void check_labels(std::int64_t index, const std::vector<std::int64_t>& labels) const;
  void write_target(Target& target, RandomSequence random, HostBatch& batch) const;

  const Dataset& dataset_;
  const Augment& augment_;
  LoaderOptions options_;
  std::int64_t image_floats_, target_values_;  // of one image
};

}  // namespace twiddle
