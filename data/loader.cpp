#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "data/augmentation/augment.h"
#include "data/batch_maker.h"
#include "data/formats/dataset.h"
#include "framework/cpu/bind_threads.h"
#include "framework/error.h"

namespace twiddle {

namespace {

constexpr std::size_t most_messages = 10;
constexpr std::size_t uploads_ahead = 1;  // batches that are being copied to a GPU, besides the one in use

// A batch, and the copy of it to the device.
struct Upload {
  HostBatch host;
  Batch batch;
  std::shared_ptr<Event> done;  // null where there was nothing to copy
};

// Batches on the device at a time: the one in use, and on a GPU those that are being copied.
std::size_t batches_on(const Stream& stream) {
  return stream.device().kind == Device::Kind::cpu ? 1 : 1 + uploads_ahead;
}

void* write_any(Tensor& tensor) {
  return tensor.type() == DType::i32 ? static_cast<void*>(tensor.write<std::int32_t>()) : tensor.write();
}

}  // namespace

struct Loader::State {
  const Dataset& dataset;
  const Augment& augment;
  const LoaderOptions options;
  const BatchMaker maker;
  const std::int64_t batches;

  // Guarded by the mutex; `moved` tells of every change.
  mutable std::mutex mutex;
  std::condition_variable moved;
  std::shared_ptr<Epoch> epoch;
  std::int64_t claimed = 0, delivered = 0;  // batches of this epoch
  int being_made = 0;                       // batches of any epoch
  std::map<std::int64_t, HostBatch> ready;  // by number
  std::vector<HostBatch> spare;             // buffers to use again
  bool stopping = false;

  // The caller's own.
  double wait_seconds = 0;
  std::int64_t position = 0;                        // in the order of this epoch: behind the batch handed out last
  std::int64_t tried_batches = 0, good_images = 0;  // of this epoch, since it was started
  std::vector<Batch> places;                        // of batches of the full size, in turn; empty: not made yet
  std::size_t next_place = 0;
  const Stream* stream_of_places = nullptr;
  std::deque<Upload> uploads, uploaded;  // not yet handed out; handed out, and their host memory not yet free
  std::set<std::int64_t> skipped;
  std::vector<std::string> messages;

  std::vector<std::thread> workers;

  State(const Dataset& data, const Augment& steps, const LoaderOptions& chosen)
      : dataset(data),
        augment(steps),
        options(chosen),
        maker(data, steps, chosen),
        batches(maker.batches_of(data.size())) {}

  void start_workers();
  void stop_workers();
  void start(Stream& stream, std::int64_t number, std::int64_t first_image);
  void end();
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
};

// A limit of processes or of memory may allow only some: those end again before the error is told.
void Loader::State::start_workers() try {
  for (int i = 0; i < options.workers; ++i)
    workers.emplace_back([this] {
      unbind_this_thread();
      work();
    });
} catch (const std::exception& error) {
  const std::size_t started = workers.size();
  stop_workers();
  throw Error(ErrorKind::device, join("cannot start ", options.workers, " threads that read images, only ", started,
                                      ": ", error.what(), "; take fewer: data.workers, or --workers"));
}

void Loader::State::stop_workers() {
  {
    const std::lock_guard lock(mutex);
    cancel();
    stopping = true;
  }
  moved.notify_all();
  for (std::thread& worker : workers) worker.join();
}

void Loader::State::start(Stream& stream, std::int64_t number, std::int64_t first_image) {
  drop_uploads();
  if (&stream != stream_of_places) drop_places();
  stream_of_places = &stream;
  std::shared_ptr<Epoch> next = maker.epoch(stream, number, first_image);
  wait_seconds = 0, tried_batches = 0, good_images = 0;
  const std::lock_guard lock(mutex);
  cancel();
  epoch = std::move(next);
  claimed = delivered = 0;
  position = epoch->first_image;
  moved.notify_all();
}

void Loader::State::end() {
  {
    std::unique_lock lock(mutex);
    cancel();
    moved.wait(lock, [&] { return being_made == 0; });
  }
  drop_uploads();
  drop_places();
  const std::lock_guard lock(mutex);
  spare.clear();
}

// With the mutex held: what the workers are making is of no use any more.
void Loader::State::cancel() {
  if (epoch) epoch->cancelled = true;
  epoch = nullptr;
  for (auto& [number, batch] : ready) spare.push_back(std::move(batch));
  ready.clear();
}

// What each worker thread does: it claims a batch, makes it without holding the lock, and hands it in.
void Loader::State::work() {
  const std::int64_t window = options.prefetch + options.workers;
  std::unique_lock lock(mutex);
  while (true) {
    moved.wait(lock, [&] { return stopping || (epoch && claimed < std::min(epoch->batches, delivered + window)); });
    if (stopping) return;
    const std::shared_ptr<Epoch> pass = epoch;
    const std::int64_t number = claimed++;
    ++being_made;
    HostBatch batch = spare_buffer();
    lock.unlock();
    maker.make(*pass, number, batch);
    lock.lock();
    --being_made;
    if (pass == epoch)
      ready.emplace(number, std::move(batch));
    else
      spare.push_back(std::move(batch));
    moved.notify_all();
  }
}

HostBatch Loader::State::spare_buffer() {
  if (spare.empty()) return {};
  HostBatch batch = std::move(spare.back());
  spare.pop_back();
  return batch;
}

bool Loader::State::next_is_ready() const {
  const std::lock_guard lock(mutex);
  return ready.count(delivered) > 0;
}

HostBatch Loader::State::take_next() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex);
  HostBatch batch;
  if (options.workers == 0) {
    batch = spare_buffer();
    maker.make(*epoch, delivered, batch);
  } else {
    moved.wait(lock, [&] { return ready.count(delivered) > 0; });
    batch = std::move(ready.extract(delivered).mapped());
  }
  ++delivered;
  lock.unlock();
  moved.notify_all();
  wait_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return batch;
}

// Starts the copies of the next batches: of one at least, even if it has to wait for the worker, and of others where
// they are made already.
void Loader::State::upload_ahead() {
  Stream& stream = *epoch->stream;
  while (uploads.size() < batches_on(stream) && delivered < epoch->batches && (uploads.empty() || next_is_ready())) {
    Upload upload{take_next(), {}, nullptr};
    const std::int64_t count = upload.host.count;
    if (count > 0 && !upload.host.error) {
      upload.batch = place_for(upload.host.indices);
      stream.copy_async(upload.batch.images.write(), upload.host.images, upload.batch.images.bytes());
      upload.done =
          stream.copy_async(write_any(upload.batch.targets), upload.host.targets, upload.batch.targets.bytes());
    }
    uploads.push_back(std::move(upload));
  }
}

// Where a batch goes on the device. A copy begins after all work that the stream was given before it, and the step that
// read the batch before at this place is part of that work.
Batch Loader::State::place_for(const std::vector<std::int64_t>& indices) {
  Stream& stream = *epoch->stream;
  const auto count = static_cast<std::int64_t>(indices.size());
  const auto make = [&] {
    const Shape& image = augment.image_shape();
    return Batch{Tensor(stream, {count, image[0], image[1], image[2]}), maker.targets(stream, count), {}};
  };
  const bool is_full = count == options.batch_size / options.ranks;
  if (is_full && next_place == places.size()) places.push_back(make());
  Batch batch = is_full ? places[next_place] : make();
  if (is_full) next_place = (next_place + 1) % batches_on(stream);
  batch.indices = indices;
  return batch;
}

void Loader::State::drop_places() {
  places.clear();
  next_place = 0;
}

// Their memory on the device must not be given to others before the copies have ended.
void Loader::State::drop_uploads() {
  for (std::deque<Upload>* all : {&uploads, &uploaded})
    for (; !all->empty(); all->pop_front()) use_again(std::move(all->front()));
}

void Loader::State::use_again(Upload upload) {
  if (upload.done) upload.done->wait();
  const std::lock_guard lock(mutex);
  spare.push_back(std::move(upload.host));
}

void Loader::State::remember_bad(const HostBatch& batch) {
  for (const BadImage& bad : batch.bad)
    if (skipped.insert(bad.index).second && messages.size() < most_messages) messages.push_back(bad.message);
}

// Those that workers make or have made, and the one that is being copied to the device or was last.
std::int64_t most_host_batches(const LoaderOptions& options) {
  return (options.workers > 0 ? options.workers + options.prefetch : 0) + 1;
}

Loader::Loader(const Dataset& dataset, const Augment& augment, LoaderOptions options) {
  require(options.batch_size >= 1 && options.workers >= 0 && options.prefetch >= 0,
          "a loader needs a batch size of at least 1 and no negative counts of workers or batches ahead");
  require(options.batch_size % options.ranks == 0, "a batch of ", options.batch_size, " cannot be shared evenly by ",
          options.ranks, " ranks");
  state_ = std::make_unique<State>(dataset, augment, options);
  if (state_->batches == 0)
    throw Error(ErrorKind::data, join("no batch of ", options.batch_size, " can be made of ", dataset.size(),
                                      " image(s) (", dataset.describe(), "); use a smaller batch size"));
  state_->start_workers();
}

Loader::~Loader() {
  state_->stop_workers();
  try {
    state_->drop_uploads();
  } catch (...) {  // the device is lost: whoever uses it next says so
  }
}

std::int64_t Loader::batches_per_epoch() const {
  return state_->batches;
}

const Augment& Loader::augment() const {
  return state_->augment;
}

const Dataset& Loader::dataset() const {
  return state_->dataset;
}

std::int64_t Loader::classes() const {
  return static_cast<std::int64_t>(state_->dataset.classes().size());
}

void Loader::start_epoch(Stream& stream, std::int64_t epoch, std::int64_t first_image) {
  require(epoch >= 0 && first_image >= 0, "a loader cannot start at epoch ", epoch, ", image ", first_image);
  state_->start(stream, epoch, first_image);
}

void Loader::end_epoch() {
  state_->end();
}

bool Loader::next(Batch& batch) {
  State& state = *state_;
  require(state.epoch != nullptr, "a loader's next() needs start_epoch() first");
  const bool shared = state.options.ranks > 1;  // then the other ranks may have images
  while (true) {
    // The memory of a batch handed out before: its copy has ended long ago, unless the host is many steps ahead.
    while (state.uploaded.size() >= batches_on(*state.epoch->stream)) {
      state.use_again(std::move(state.uploaded.front()));
      state.uploaded.pop_front();
    }
    state.upload_ahead();
    if (state.uploads.empty()) break;
    Upload upload = std::move(state.uploads.front());
    state.uploads.pop_front();
    if (upload.host.error) std::rethrow_exception(upload.host.error);
    state.remember_bad(upload.host);
    const std::int64_t count = upload.host.count;
    state.position = std::min(state.position + state.options.batch_size, state.dataset.size());
    ++state.tried_batches, state.good_images += count;
    if (count > 0) state.epoch->stream->wait_event(*upload.done);
    if (count > 0 || shared) batch = std::move(upload.batch);
    state.uploaded.push_back(std::move(upload));
    if (count > 0 || shared) return true;
  }
  if (!shared && state.tried_batches == state.batches && state.good_images == 0)
    throw Error(ErrorKind::data, join("not one image could be read: all of ", state.dataset.describe(),
                                      " were skipped; the first: ", state.messages.front()));
  return false;
}

std::int64_t Loader::position() const {
  return state_->position;
}
double Loader::wait_seconds() const {
  return state_->wait_seconds;
}
std::int64_t Loader::skipped() const {
  return static_cast<std::int64_t>(state_->skipped.size());
}
const std::set<std::int64_t>& Loader::skipped_indices() const {
  return state_->skipped;
}
std::vector<std::string> Loader::skipped_messages() const {
  return state_->messages;
}

}  // namespace twiddle
