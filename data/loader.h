#pragma once
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "data/augmentation/mixing.h"
#include "data/target.h"
#include "framework/tensor.h"

namespace twiddle {

class Augment;
class Dataset;

// Images [batch, channels, height, width] f32 on the stream's device, and what is to be made of them: labels i32
// [batch]; shares of the classes f32 [batch, outputs], which of several labels are 1 each; or images like those.
struct Batch {
  Tensor images, targets;
  std::vector<std::int64_t> indices;  // into the dataset

  // Where ranks share a batch, this one has the rows from `first` on of `all`, as whoever asks the ranks finds.
  struct Rows {
    std::int64_t first = 0, all = 0;  // all: 0 where nothing is shared
    bool on_every_rank = true;        // each has one at least
  } rows = {};
  std::int64_t rows_here() const { return static_cast<std::int64_t>(images.defined() ? images.dim(0) : 0); }
  std::int64_t rows_of_all() const { return rows.all > 0 ? rows.all : rows_here(); }
};

struct LoaderOptions {
  std::int64_t batch_size = 64;
  int rank = 0, ranks = 1;  // where ranks share each batch, the loader brings the rows of one; batch_size counts all
  int workers = 2;          // threads that decode and augment; 0: the caller's thread does it
  int prefetch = 2;         // batches ready ahead of the step, besides the one that each worker is making
  bool shuffle = false;     // a new order each epoch, a function of (seed, epoch)
  bool drop_last = false;   // an epoch ends with the last full batch
  bool skip_bad = false;    // on_error: skip: a bad image is left out and counted; otherwise it is an error
  std::uint64_t seed = 1;
  TargetKind target = TargetKind::label;
  std::int64_t outputs = 0;  // classes in a row of shares
  double noise = 0;          // standard deviation of what is added to the images, after the targets were made
  Mixing mixing = {};        // of images and labels; targets are rows of shares then
};

// Batches that a loader holds on the host at most.
std::int64_t most_host_batches(const LoaderOptions& options);

// Feeds epochs of batches, made ahead of time by worker threads. On a GPU the next one is copied to the
// device while the step is running. What a batch holds depends on seed, epoch and index alone.
class Loader {
 public:
  Loader(const Dataset& dataset, const Augment& augment, LoaderOptions options);
  ~Loader();

  std::int64_t batches_per_epoch() const;
  std::int64_t classes() const;  // that the dataset names
  const Dataset& dataset() const;
  const Augment& augment() const;
  // Batches go to this stream, which must live as long as the epoch; first_image > 0: a resumed run goes on there in
  // the epoch's order, with batches of whatever size.
  void start_epoch(Stream& stream, std::int64_t epoch, std::int64_t first_image = 0);
  // False: the epoch is over; throws what a worker met. Where ranks share a batch, one may have no row of it, and gets
  // a batch without images. Batches of the full size lie at two places on a GPU in turn, on a CPU at one: a batch holds
  // until the call after it. What the stream has been given by then may still read it.
  bool next(Batch& batch);
  void end_epoch();  // frees its memory, until the next epoch is started
  // Images of the epoch's order that next() has come past, bad ones included: the first_image of a resumed run.
  std::int64_t position() const;
  double wait_seconds() const;   // spent inside next() waiting for workers, since start_epoch
  std::int64_t skipped() const;  // different bad images left out so far
  const std::set<std::int64_t>& skipped_indices() const;
  std::vector<std::string> skipped_messages() const;  // of the first few of them

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace twiddle
