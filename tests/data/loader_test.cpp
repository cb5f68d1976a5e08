#include "data/loader.h"

#include <omp.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

#include "framework/cpu/bind_threads.h"
#include "tests/data/numbers.h"
#include "tests/support/forwarding_stream.h"

namespace twiddle {

namespace {

// Everything that an epoch delivers.
struct Seen {
  std::vector<std::int64_t> sizes, indices;
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  bool operator==(const Seen&) const = default;
};

Seen drain(Loader& loader, std::int64_t epoch, std::int64_t first_image = 0) {
  const auto stream = make_stream({});
  Seen seen;
  Batch batch;
  loader.start_epoch(*stream, epoch, first_image);
  while (loader.next(batch)) {
    const auto append = [](auto& all, const auto& more) { all.insert(all.end(), more.begin(), more.end()); };
    seen.sizes.push_back(batch.images.dim(0));
    append(seen.indices, batch.indices);
    append(seen.values, batch.images.to_vector(*stream));
    append(seen.labels, batch.targets.to_vector<std::int32_t>(*stream));
  }
  return seen;
}

}  // namespace

TEST(Loader, DeliversImagesAndLabelsInOrder) {
  const Numbers data(5);
  const Augment augment = plain();
  Loader loader(data, augment, {.batch_size = 2});
  EXPECT_EQ(loader.batches_per_epoch(), 3);
  const Seen seen = drain(loader, 0);
  EXPECT_EQ(seen.sizes, (std::vector<std::int64_t>{2, 2, 1}));
  EXPECT_EQ(seen.indices, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(seen.labels, (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  ASSERT_EQ(seen.values.size(), 30u);
  EXPECT_FLOAT_EQ(seen.values[29], 4 / 255.0f);
  EXPECT_EQ(drain(loader, 1), seen);  // without shuffle, each epoch is the same
}

// Each worker encodes in its images whether it may run on only one core.
class NumbersOfOneCore final : public Numbers {
 public:
  using Numbers::Numbers;
  Target get(std::int64_t index, Image& image) const override {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof cores, &cores);
    on_one_core += CPU_COUNT(&cores) == 1;
    return Numbers::get(index, image);
  }
  mutable std::atomic<int> on_one_core = 0;
};

TEST(Loader, KeepsWorkersOffComputeCore) {
  if (omp_get_num_procs() == 1) GTEST_SKIP() << "one core: nothing to choose from";
  const NumbersOfOneCore data(20);
  const Augment augment = plain();
  std::thread([&] {  // bound instead of this process's first thread
    omp_set_num_threads(omp_get_num_procs());
    bind_threads();
    Loader loader(data, augment, {.batch_size = 2, .workers = 2});
    drain(loader, 0);
  })
      .join();
  EXPECT_EQ(data.on_one_core, 0);
}

TEST(Loader, BatchesIgnoreWorkerCount) {
  const Numbers data(103);
  const Augment augment =
      read_augment(mapping({{"augment", sequence({mapping({{"pad_crop", "1"}}), "hflip"})}}), {1, 2, 3});
  std::vector<Seen> all;
  for (const int workers : {0, 1, 3}) {
    Loader loader(data, augment, {.batch_size = 8, .workers = workers, .prefetch = 1, .shuffle = true, .seed = 7});
    drain(loader, 3);
    all.push_back(drain(loader, 4));
  }
  EXPECT_EQ(all[0], all[1]);
  EXPECT_EQ(all[0], all[2]);
}

TEST(Loader, ShufflesEachEpochWithoutRepeats) {
  const Numbers data(50);
  const Augment augment = plain();
  Loader loader(data, augment, {.batch_size = 7, .shuffle = true});
  const std::vector<std::int64_t> first = drain(loader, 0).indices, second = drain(loader, 1).indices;
  EXPECT_NE(first, second);
  EXPECT_EQ(drain(loader, 0).indices, first);
  EXPECT_EQ(std::set<std::int64_t>(first.begin(), first.end()).size(), 50u);
  Loader other(data, augment, {.batch_size = 7, .shuffle = true, .seed = 2});
  EXPECT_NE(drain(other, 0).indices, first);
}

TEST(Loader, ResumesMidEpoch) {
  const Numbers data(40);
  const Augment augment = read_augment(mapping({{"augment", sequence({"hflip"})}}), {1, 2, 3});
  const LoaderOptions options{.batch_size = 8, .shuffle = true};
  Loader loader(data, augment, options), resumed(data, augment, options);
  const Seen whole = drain(loader, 2), rest = drain(resumed, 2, 24);
  EXPECT_EQ(rest.indices, std::vector<std::int64_t>(whole.indices.begin() + 24, whole.indices.end()));
  EXPECT_EQ(rest.values, std::vector<float>(whole.values.begin() + 24 * 6, whole.values.end()));
  EXPECT_TRUE(drain(resumed, 2, 40).indices.empty());
}

TEST(Loader, ResumesWithAnotherBatchSize) {
  const Numbers data(40);
  const Augment augment = plain();
  Loader loader(data, augment, {.batch_size = 8, .shuffle = true});
  const Seen whole = drain(loader, 2);
  for (const int workers : {0, 2}) {
    Loader other(data, augment, {.batch_size = 7, .workers = workers, .shuffle = true});
    const Seen rest = drain(other, 2, 24);
    EXPECT_EQ(rest.sizes, (std::vector<std::int64_t>{7, 7, 2}));
    EXPECT_EQ(rest.indices, std::vector<std::int64_t>(whole.indices.begin() + 24, whole.indices.end()));
    EXPECT_EQ(other.position(), 40);
  }
}

TEST(Loader, NamesImageOfInvalidLabel) {
  Numbers data(12);
  data.label_of_ten = 10;
  const Augment augment = plain();
  Loader loader(data, augment, {.batch_size = 4, .skip_bad = true});
  const std::string message = message_of(ErrorKind::data, [&] { drain(loader, 0); });
  EXPECT_NE(message.find("number 10: image 10 of the dataset has the label 10, the dataset names 10 classes, 0 to 9"),
            std::string::npos)
      << message;
}

TEST(Loader, DropsLastBatchIfSet) {
  const Numbers data(10);
  const Augment augment = plain();
  Loader loader(data, augment, {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(drain(loader, 0).sizes, (std::vector<std::int64_t>{4, 4}));
  const std::string message =
      message_of(ErrorKind::data, [&] { Loader(data, augment, {.batch_size = 11, .drop_last = true}); });
  EXPECT_NE(message.find("no batch of 11 can be made of 10 image(s)"), std::string::npos) << message;
}

TEST(Loader, NewEpochCancelsUnfinishedEpoch) {
  const Numbers data(1000);
  const Augment augment = plain();
  const auto stream = make_stream({});
  for (const int workers : {0, 3}) {
    Loader loader(data, augment, {.batch_size = 10, .workers = workers, .prefetch = 4, .shuffle = true});
    const Seen reference = drain(loader, 9);
    Batch batch;
    for (int epoch = 0; epoch < 9; ++epoch) {
      loader.start_epoch(*stream, epoch);
      for (int i = 0; i < epoch % 3; ++i) loader.next(batch);
    }
    EXPECT_EQ(drain(loader, 9), reference);
    loader.start_epoch(*stream, 10);  // and the destructor in the middle of one
  }
}

TEST(Loader, ReportsBadImageInOrder) {
  const Numbers data(20, {13});
  const Augment augment = plain();
  const auto stream = make_stream({});
  for (const int workers : {0, 2}) {
    Loader loader(data, augment, {.batch_size = 5, .workers = workers});
    loader.start_epoch(*stream, 0);
    Batch batch;
    EXPECT_TRUE(loader.next(batch));
    EXPECT_TRUE(loader.next(batch));
    const std::string message = message_of(ErrorKind::data, [&] { loader.next(batch); });
    EXPECT_EQ(message.rfind("number 13: truncated\n", 0), 0u) << message;
    EXPECT_NE(message.find("image 14 of 20; set `on_error: skip`"), std::string::npos) << message;
  }
}

TEST(Loader, NamesImageIfReadingThrows) {
  Numbers data(3);
  data.broken = 2;
  const Augment augment = plain(), larger = read_augment(mapping({}), {1, 9, 9});
  Loader loader(data, augment, {.batch_size = 3, .skip_bad = true}), misfit(data, larger, {.skip_bad = true});
  EXPECT_EQ(message_of(ErrorKind::failed, [&] { drain(loader, 0); }), "number 2: out of luck");
  // A wrong shape must be fixed in the configuration: it is never skipped.
  const std::string message = message_of(ErrorKind::config, [&] { drain(misfit, 0); });
  EXPECT_EQ(message.rfind("number 0: the image is 1x2x3", 0), 0u) << message;
}

TEST(Loader, SkipsCountsAndListsBadImages) {
  const Numbers data(12, {1, 4, 5, 6, 7});
  const Augment augment = plain();
  Loader loader(data, augment, {.batch_size = 4, .skip_bad = true});
  const Seen seen = drain(loader, 0);
  EXPECT_EQ(seen.sizes, (std::vector<std::int64_t>{3, 4}));  // the second batch has nothing left
  EXPECT_EQ(seen.indices, (std::vector<std::int64_t>{0, 2, 3, 8, 9, 10, 11}));
  EXPECT_FLOAT_EQ(seen.values[6], 2 / 255.0f);
  EXPECT_EQ(drain(loader, 1), seen);
  EXPECT_EQ(loader.skipped(), 5);
  EXPECT_EQ(loader.skipped_messages().size(), 5u);
  EXPECT_EQ(loader.skipped_messages()[0], "number 1: truncated");
}

TEST(Loader, PositionCountsBadImages) {
  const Numbers data(12, {3, 4, 5, 9, 10, 11});
  const Augment augment = plain();
  const auto stream = make_stream({});
  for (const int workers : {0, 2}) {
    Loader loader(data, augment, {.batch_size = 3, .workers = workers, .skip_bad = true});
    Batch batch;
    loader.start_epoch(*stream, 0);
    EXPECT_EQ(loader.position(), 0);
    EXPECT_TRUE(loader.next(batch));
    EXPECT_EQ(loader.position(), 3);
    EXPECT_TRUE(loader.next(batch));
    EXPECT_EQ(loader.position(), 9);
    EXPECT_FALSE(loader.next(batch));
    EXPECT_EQ(loader.position(), 12);
    EXPECT_TRUE(drain(loader, 0, 9).indices.empty());  // what is left has no good image: no error, as others had
    EXPECT_EQ(drain(loader, 0, 3).indices, (std::vector<std::int64_t>{6, 7, 8}));
  }
}

TEST(Loader, FailsIfNoImageIsReadable) {
  const Numbers data(3, {0, 1, 2});
  const Augment augment = plain();
  Loader loader(data, augment, {.batch_size = 2, .skip_bad = true});
  const std::string message = message_of(ErrorKind::data, [&] { drain(loader, 0); });
  EXPECT_NE(message.find("not one image could be read: all of numbers"), std::string::npos) << message;
  EXPECT_NE(message.find("number 0: truncated"), std::string::npos) << message;
}

// Looks like a GPU to a loader; copies finish at once.
class FakeGpu final : public ForwardingStream {
 public:
  FakeGpu() : ForwardingStream(make_stream({})) {}
  Device device() const override { return {Device::Kind::cuda, 0}; }
  std::shared_ptr<Event> copy_async(void* to, const void* from, std::size_t bytes) override {
    destinations.push_back(to);
    return ForwardingStream::copy_async(to, from, bytes);
  }
  std::vector<const void*> destinations;
};

// A captured step reads its images from one of two buffers, which must not be overwritten in the meantime.
TEST(Loader, AlternatesBetweenTwoBatchBuffers) {
  const Numbers data(50);
  const Augment augment = plain();
  FakeGpu stream;
  Loader loader(data, augment, {.batch_size = 8, .workers = 2});
  std::set<const float*> full, other;
  for (int epoch = 0; epoch < 2; ++epoch) {
    Batch batch;
    loader.start_epoch(stream, epoch);
    for (int first = 0; loader.next(batch); first += 8) {
      (batch.images.dim(0) == 8 ? full : other).insert(batch.images.read());
      ASSERT_FLOAT_EQ(batch.images.read()[0], static_cast<float>(first) / 255);
      ASSERT_EQ(batch.targets.read<std::int32_t>()[0], first % 10);
    }
  }
  EXPECT_EQ(full.size(), 2u);
  for (const float* place : other) EXPECT_EQ(full.count(place), 0u);
}

TEST(Loader, CopiesNextBatchDuringStep) {
  const Numbers data(40);
  const Augment augment = plain();
  FakeGpu stream;
  Loader loader(data, augment, {.batch_size = 8, .workers = 1});
  Batch batch;
  loader.start_epoch(stream, 0);
  std::size_t copies = 0;  // images and labels
  for (std::size_t handed_out = 1; copies < 2 * handed_out && loader.next(batch); ++handed_out) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a step, in which the worker makes the next batch
    copies = stream.destinations.size();
  }
  EXPECT_NE(stream.destinations.back(), batch.targets.read<std::int32_t>());
}

class Unreadable final : public Numbers {
 public:
  using Numbers::Numbers;
  Target get(std::int64_t, Image&) const override { throw std::bad_alloc(); }
};

TEST(Loader, NamesImageIfOutOfMemory) {
  const Unreadable data(5);
  const Augment augment = plain();
  const auto stream = make_stream({});
  Loader loader(data, augment, {.batch_size = 2});
  Batch batch;
  loader.start_epoch(*stream, 0);
  try {
    loader.next(batch);
    FAIL() << "read without memory";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::device);
    EXPECT_EQ(error.what(), data.where(0) + ": out of memory on the host, for reading this image");
  }
}

TEST(Loader, FreesMemoryAtEndOfEpoch) {
  const Numbers data(40);
  const Augment augment = plain();
  const auto stream = make_stream({});
  Loader loader(data, augment, {.batch_size = 8});
  {
    Batch batch;
    loader.start_epoch(*stream, 0);
    loader.next(batch);
  }
  EXPECT_GT(stream->memory().in_use, 0u);
  loader.end_epoch();
  EXPECT_EQ(stream->memory().in_use, 0u);
}

TEST(Loader, RefusesNextBeforeStartEpoch) {
  const Numbers data(3);
  const Augment augment = plain();
  Loader loader(data, augment, {});
  Batch batch;
  const auto stream = make_stream({});
  EXPECT_THROW(loader.next(batch), Error);
  EXPECT_EQ(loader.wait_seconds(), 0);
}

#ifndef __SANITIZE_ADDRESS__  // the sanitizer reserves the address space
// Leaves address space for the stacks of a few threads but not of 256.
TEST(Loader, FailsIfThreadsCannotStart) {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  ASSERT_TRUE(statm >> pages);
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit small{pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{300} << 20), before.rlim_max};
  const Numbers data(5);
  const Augment augment = plain();
  std::string reported;
  setrlimit(RLIMIT_AS, &small);
  try {
    const Loader loader(data, augment, {.workers = 256});
  } catch (const Error& error) {
    reported = error.what();
  }
  setrlimit(RLIMIT_AS, &before);
  EXPECT_EQ(reported.rfind("cannot start 256 threads that read images, only ", 0), 0u) << reported;
  EXPECT_NE(reported.find("data.workers"), std::string::npos) << reported;
}
#endif

}  // namespace twiddle
