#include "data/loader.h"

#include <algorithm>
#include <chrono>

#include "data/augmentation/augment.h"
#include "framework/cpu/bind_threads.h"
#include "framework/error.h"

namespace twiddle {

namespace {

constexpr std::size_t most_messages = 10;
constexpr std::size_t uploads_ahead = 1;  // batches that are being copied to a GPU, in addition to the one in use

// Batches on the device at a time: the one in use, and on a GPU those that are being copied.
std::size_t batches_on(const Stream& stream) {
  return stream.device().kind == Device::Kind::cpu ? 1 : 1 + uploads_ahead;
}

void* write_any(Tensor& tensor) {
  return tensor.type() == DType::i32 ? static_cast<void*>(tensor.write<std::int32_t>()) : tensor.write();
}

const LoaderOptions& checked(const LoaderOptions& options) {
  require(options.batch_size >= 1 && options.workers >= 0 && options.prefetch >= 0,
          "a loader needs a batch size of at least 1 and no negative counts of workers or batches ahead");
  require(options.batch_size % options.ranks == 0, "a batch of ", options.batch_size, " cannot be split evenly over ",
          options.ranks, " ranks");
  return options;
}

}  // namespace

// Those that workers make or have made, and the one that is being copied to the device or was last.
std::int64_t most_host_batches(const LoaderOptions& options) {
  return (options.workers > 0 ? options.workers + options.prefetch : 0) + 1;
}

Loader::Loader(const Dataset& dataset, const Augment& augment, const LoaderOptions& options)
    : dataset_(dataset),
      augment_(augment),
      options_(checked(options)),
      maker_(dataset, augment, options),
      batches_(maker_.batches_of(dataset.size())) {
  if (batches_ == 0)
    throw Error(ErrorKind::data, join("no batch of ", options.batch_size, " can be made of ", dataset.size(),
                                      " image(s) (", dataset.describe(), "); use a smaller batch size"));
  start_workers();
}

Loader::~Loader() {
  stop_workers();
  try {
    drop_uploads();
  } catch (...) {  // the device is lost: its next use reports the error
  }
}

// A limit of processes or of memory may allow only some: those exit before the error is reported.
void Loader::start_workers() try {
  for (int i = 0; i < options_.workers; ++i)
    workers_.emplace_back([this] {
      unbind_this_thread();
      work();
    });
} catch (const std::exception& error) {
  const std::size_t started = workers_.size();
  stop_workers();
  throw Error(ErrorKind::device, join("cannot start ", options_.workers, " threads that read images, only ", started,
                                      ": ", error.what(), "; use fewer: data.workers, or --workers"));
}

void Loader::stop_workers() {
  {
    const std::lock_guard lock(mutex_);
    cancel();
    stopping_ = true;
  }
  moved_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void Loader::start_epoch(Stream& stream, std::int64_t epoch, std::int64_t first_image) {
  require(epoch >= 0 && first_image >= 0, "a loader cannot start at epoch ", epoch, ", image ", first_image);
  drop_uploads();
  if (&stream != stream_of_places_) drop_places();
  stream_of_places_ = &stream;
  std::shared_ptr<Epoch> next = maker_.epoch(stream, epoch, first_image);
  wait_seconds_ = 0, tried_batches_ = 0, good_images_ = 0;
  const std::lock_guard lock(mutex_);
  cancel();
  epoch_ = std::move(next);
  claimed_ = delivered_ = 0;
  position_ = epoch_->first_image;
  moved_.notify_all();
}

void Loader::end_epoch() {
  {
    std::unique_lock lock(mutex_);
    cancel();
    moved_.wait(lock, [&] { return being_made_ == 0; });
  }
  drop_uploads();
  drop_places();
  const std::lock_guard lock(mutex_);
  spare_.clear();
}

// With the mutex held: what the workers are making is of no use any more.
void Loader::cancel() {
  if (epoch_) epoch_->cancelled = true;
  epoch_ = nullptr;
  for (auto& [number, batch] : ready_) spare_.push_back(std::move(batch));
  ready_.clear();
}

// The loop of a worker thread: claims a batch, makes it without holding the lock, and appends it to the queue.
void Loader::work() {
  const std::int64_t window = options_.prefetch + options_.workers;
  std::unique_lock lock(mutex_);
  while (true) {
    moved_.wait(lock,
                [&] { return stopping_ || (epoch_ && claimed_ < std::min(epoch_->batches, delivered_ + window)); });
    if (stopping_) return;
    const std::shared_ptr<Epoch> pass = epoch_;
    const std::int64_t number = claimed_++;
    ++being_made_;
    HostBatch batch = spare_buffer();
    lock.unlock();
    maker_.make(*pass, number, batch);
    lock.lock();
    --being_made_;
    if (pass == epoch_)
      ready_.emplace(number, std::move(batch));
    else
      spare_.push_back(std::move(batch));
    moved_.notify_all();
  }
}

HostBatch Loader::spare_buffer() {
  if (spare_.empty()) return {};
  HostBatch batch = std::move(spare_.back());
  spare_.pop_back();
  return batch;
}

bool Loader::next_is_ready() const {
  const std::lock_guard lock(mutex_);
  return ready_.count(delivered_) > 0;
}

HostBatch Loader::take_next() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  HostBatch batch;
  if (options_.workers == 0) {
    batch = spare_buffer();
    maker_.make(*epoch_, delivered_, batch);
  } else {
    moved_.wait(lock, [&] { return ready_.count(delivered_) > 0; });
    batch = std::move(ready_.extract(delivered_).mapped());
  }
  ++delivered_;
  lock.unlock();
  moved_.notify_all();
  wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return batch;
}

// Starts the copies of the next batches: of one at least, even if it has to wait for the worker, and of others where
// they are made already.
void Loader::upload_ahead() {
  Stream& stream = *epoch_->stream;
  while (uploads_.size() < batches_on(stream) && delivered_ < epoch_->batches &&
         (uploads_.empty() || next_is_ready())) {
    Upload upload{take_next(), {}, nullptr};
    const std::int64_t count = upload.host.count;
    if (count > 0 && !upload.host.error) {
      upload.batch = place_for(upload.host.indices);
      stream.copy_async(upload.batch.images.write(), upload.host.images, upload.batch.images.bytes());
      upload.done =
          stream.copy_async(write_any(upload.batch.targets), upload.host.targets, upload.batch.targets.bytes());
    }
    uploads_.push_back(std::move(upload));
  }
}

// Where a batch goes on the device. A copy begins after all work that the stream was given before it, and the step that
// read the batch before at this place is part of that work.
Batch Loader::place_for(const std::vector<std::int64_t>& indices) {
  Stream& stream = *epoch_->stream;
  const auto count = static_cast<std::int64_t>(indices.size());
  const auto make = [&] {
    const Shape& image = augment_.image_shape();
    return Batch{Tensor(stream, {count, image[0], image[1], image[2]}), maker_.targets(stream, count), {}};
  };
  const bool is_full = count == options_.batch_size / options_.ranks;
  if (is_full && next_place_ == places_.size()) places_.push_back(make());
  Batch batch = is_full ? places_[next_place_] : make();
  if (is_full) next_place_ = (next_place_ + 1) % batches_on(stream);
  batch.indices = indices;
  return batch;
}

void Loader::drop_places() {
  places_.clear();
  next_place_ = 0;
}

// Their memory on the device must not be reused before the copies have finished.
void Loader::drop_uploads() {
  for (std::deque<Upload>* all : {&uploads_, &uploaded_})
    for (; !all->empty(); all->pop_front()) use_again(std::move(all->front()));
}

void Loader::use_again(Upload upload) {
  if (upload.done) upload.done->wait();
  const std::lock_guard lock(mutex_);
  spare_.push_back(std::move(upload.host));
}

void Loader::remember_bad(const HostBatch& batch) {
  for (const BadImage& bad : batch.bad)
    if (skipped_.insert(bad.index).second && messages_.size() < most_messages) messages_.push_back(bad.message);
}

bool Loader::next(Batch& batch) {
  require(epoch_ != nullptr, "a loader's next() needs start_epoch() first");
  const bool shared = options_.ranks > 1;  // then the other ranks may have images
  while (true) {
    // The memory of an earlier batch: its copy is usually complete, unless the host is many steps ahead.
    while (uploaded_.size() >= batches_on(*epoch_->stream)) {
      use_again(std::move(uploaded_.front()));
      uploaded_.pop_front();
    }
    upload_ahead();
    if (uploads_.empty()) break;
    Upload upload = std::move(uploads_.front());
    uploads_.pop_front();
    if (upload.host.error) std::rethrow_exception(upload.host.error);
    remember_bad(upload.host);
    const std::int64_t count = upload.host.count;
    position_ = std::min(position_ + options_.batch_size, dataset_.size());
    ++tried_batches_, good_images_ += count;
    if (count > 0) epoch_->stream->wait_event(*upload.done);
    if (count > 0 || shared) batch = std::move(upload.batch);
    uploaded_.push_back(std::move(upload));
    if (count > 0 || shared) return true;
  }
  if (!shared && tried_batches_ == batches_ && good_images_ == 0)
    throw Error(ErrorKind::data, join("not one image could be read: all of ", dataset_.describe(),
                                      " were skipped; the first: ", messages_.front()));
  return false;
}

}  // namespace twiddle
