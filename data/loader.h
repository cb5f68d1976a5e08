#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "data/batch_maker.h"

namespace twiddle {

// Images [batch, channels, height, width] f32 on the stream's device, and their targets: labels i32 [batch]; shares of
// the classes f32 [batch, outputs], which of several labels are 1 each; or images like those.
struct Batch {
  Tensor images, targets;
  std::vector<std::int64_t> indices;  // into the dataset

  // If ranks share a batch, this rank has the rows from `first` on of `all`. The code that synchronizes the ranks sets
  // this.
  struct Rows {
    std::int64_t first = 0, all = 0;  // all: 0 where nothing is shared
    bool on_every_rank = true;        // each has one at least
  } rows = {};
  std::int64_t rows_here() const { return static_cast<std::int64_t>(images.defined() ? images.dim(0) : 0); }
  std::int64_t rows_of_all() const { return rows.all > 0 ? rows.all : rows_here(); }
};

// Batches that a loader holds on the host at most.
std::int64_t most_host_batches(const LoaderOptions& options);

// Feeds epochs of batches, made ahead of time by worker threads. On a GPU the next one is copied to the
// device while the step is running. What a batch holds depends on seed, epoch and index alone.
class Loader {
 public:
  Loader(const Dataset& dataset, const Augment& augment, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  std::int64_t batches_per_epoch() const { return batches_; }
  std::int64_t classes() const { return std::ssize(dataset_.classes()); }  // that the dataset names
  const Dataset& dataset() const { return dataset_; }
  const Augment& augment() const { return augment_; }
  // Batches go to this stream, which must live as long as the epoch; first_image > 0: a resumed run continues there in
  // the epoch's order, with batches of any size.
  void start_epoch(Stream& stream, std::int64_t epoch, std::int64_t first_image = 0);
  // False: the epoch is over; throws what a worker met. Where ranks share a batch, one may have no row of it, and gets
  // a batch without images. Batches of the full size lie at two places on a GPU in turn, on a CPU at one: a batch holds
  // until the call after it. What the stream has been given by then may still read it.
  bool next(Batch& batch);
  void end_epoch();  // frees its memory, until the next epoch is started
  // Images of the epoch's order that next() has come past, bad ones included: the first_image of a resumed run.
  std::int64_t position() const { return position_; }
  double wait_seconds() const { return wait_seconds_; }          // in next(), for workers, since start_epoch
  std::int64_t skipped() const { return std::ssize(skipped_); }  // different bad images left out so far
  const std::set<std::int64_t>& skipped_indices() const { return skipped_; }
  const std::vector<std::string>& skipped_messages() const { return messages_; }  // of the first few of them

 private:
  // A batch, and the copy of it to the device.
  struct Upload {
    HostBatch host;
    Batch batch;
    std::shared_ptr<Event> done;  // null where there was nothing to copy
  };

  void start_workers();
  void stop_workers();
  void cancel();
  void work();
  bool next_is_ready() const;
  HostBatch take_next();
  void upload_ahead();
  Batch place_for(const std::vector<std::int64_t>& indices);
  void drop_uploads();
  void drop_places();
  void use_again(Upload upload);
  HostBatch spare_buffer();
  void remember_bad(const HostBatch& batch);

  const Dataset& dataset_;
  const Augment& augment_;
  const LoaderOptions options_;
  const BatchMaker maker_;
  const std::int64_t batches_;

  // Guarded by the mutex; `moved` signals every change.
  mutable std::mutex mutex_;
  std::condition_variable moved_;
  std::shared_ptr<Epoch> epoch_;
  std::int64_t claimed_ = 0, delivered_ = 0;  // batches of this epoch
  int being_made_ = 0;                        // batches of any epoch
  std::map<std::int64_t, HostBatch> ready_;   // by number
  std::vector<HostBatch> spare_;              // buffers to use again
  bool stopping_ = false;

  // The caller's own.
  double wait_seconds_ = 0;
  std::int64_t position_ = 0;                         // in the order of this epoch: after the batch returned last
  std::int64_t tried_batches_ = 0, good_images_ = 0;  // of this epoch, since it was started
  std::vector<Batch> places_;                         // of batches of the full size, in turn; empty: not made yet
  std::size_t next_place_ = 0;
  const Stream* stream_of_places_ = nullptr;
  std::deque<Upload> uploads_, uploaded_;  // not yet returned; returned, and their host memory not yet free
  std::set<std::int64_t> skipped_;
  std::vector<std::string> messages_;

  std::vector<std::thread> workers_;
};

}  // namespace twiddle
