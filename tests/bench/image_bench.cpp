// Time per training image on one core: reading the file, decoding, each step of `augment:`, and the conversion to
// floats; then the images per second of a loader with 1, 2, 4 ... workers.
// usage: twiddle_image_bench FOLDER [IMAGES] [DEVICE]   FOLDER is an image_folder; the batches go to DEVICE (cpu)
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "data/augmentation/augment.h"
#include "data/files.h"
#include "data/images/decoders.h"
#include "data/loader.h"
#include "framework/config/params.h"

using namespace twiddle;

namespace {

using Clock = std::chrono::steady_clock;

ConfigNode scalar(const std::string& text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar, node.text = text;
  return node;
}

ConfigNode mapping(const std::string& key, const ConfigNode& value) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::mapping, node.entries.push_back({key, {}, value});
  return node;
}

std::unique_ptr<Dataset> open_folder(const std::string& path) {
  Diagnostics diagnostics;
  Params params(mapping("path", scalar(path)), "image_folder", diagnostics);
  const auto source = builtin_datasets().make("image_folder", {"", {3, 224, 224}, 0}, params);
  diagnostics.throw_if_any();
  return source->open();
}

// ImageNet's normalization after these steps.
Augment augment_of(const std::vector<const char*>& steps) {
  Diagnostics diagnostics;
  ConfigNode list, data = mapping("normalize", scalar("imagenet"));
  list.kind = ConfigNode::Kind::sequence;
  for (const char* name : steps) list.items.push_back(scalar(name));
  data.entries.push_back({"augment", {}, list});
  Params params(data, "data", diagnostics);
  return Augment(params, "augment", {3, 224, 224});
}

Augment::Step step(const char* name) {
  Diagnostics diagnostics;
  ConfigNode entry = scalar(name);
  return read_augment_step(entry, {224, 224}, diagnostics);
}

// Microseconds per image of each part, summed over images; then the fastest of several rounds.
struct Times {
  double read = 0, decode = 0, window = 0, flip = 0, floats = 0;

  double sum() const { return read + decode + window + flip + floats; }
};

Times one_round(const Dataset& dataset, std::int64_t images) {
  const Augment::Step window = step("random_resized_crop"), flip = step("hflip");
  const Augment normalize = augment_of({});
  std::vector<float> floats(3 * 224 * 224 * 16);
  Times times;
  Clock::time_point last;
  const auto lap = [&] {
    const Clock::time_point now = Clock::now();
    const double passed = std::chrono::duration<double, std::micro>(now - last).count();
    last = now;
    return passed;
  };
  for (std::int64_t i = 0; i < images; ++i) {
    const std::int64_t index = i % dataset.size();
    const RandomSequence random = RandomSequence{1, 0}.split(static_cast<std::uint64_t>(i));
    Image image;
    last = Clock::now();
    const std::vector<std::uint8_t> bytes = read_bytes(dataset.where(index));
    const double read = lap();
    dataset.get(index, image);
    times.read += read, times.decode += lap() - read;
    window.apply(image, random.split(0));
    times.window += lap();
    flip.apply(image, random.split(1));
    times.flip += lap();
    normalize(image, random, floats.data() + i % 16 * 3 * 224 * 224);
    times.floats += lap();
  }
  for (double* part : {&times.read, &times.decode, &times.window, &times.flip, &times.floats})
    *part /= static_cast<double>(images);
  return times;
}

void show_parts(const Dataset& dataset, std::int64_t images) {
  Times best = one_round(dataset, images);
  for (int round = 1; round < 5; ++round) {
    const Times times = one_round(dataset, images);
    if (times.sum() < best.sum()) best = times;
  }
  std::printf("%s; JPEGs by %s; one core, microseconds an image, the quickest of 5 rounds over %lld images\n\n",
              dataset.describe().c_str(), jpeg_reader().c_str(), static_cast<long long>(images));
  std::printf("| read | decode | random_resized_crop 224 | hflip | normalize | together | images/s |\n");
  std::printf("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  std::printf("| %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f |\n\n", best.read, best.decode, best.window, best.flip,
              best.floats, best.sum(), 1e6 / best.sum());
}

// The fastest of three epochs, after one that is not measured.
double loader_rate(const Dataset& dataset, int workers, const Device& device) {
  const auto stream = make_stream(device);
  const Augment augment = augment_of({"random_resized_crop", "hflip"});
  LoaderOptions options;
  options.workers = workers, options.shuffle = true;
  Loader loader(dataset, augment, options);
  double best = 0;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    const Clock::time_point start = Clock::now();
    Batch batch;
    loader.start_epoch(*stream, epoch);
    while (loader.next(batch)) continue;
    stream->synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (epoch > 0) best = std::max(best, static_cast<double>(dataset.size()) / seconds);
  }
  return best;
}

void show_loader(const Dataset& dataset, const std::string& device) {
  std::printf("| workers | images/s of a loader, batch 64, to %s |\n| ---: | ---: |\n", device.c_str());
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  for (int workers = 1; workers <= cores; workers *= 2)
    std::printf("| %d | %.0f |\n", workers, loader_rate(dataset, workers, parse_device(device)));
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [IMAGES] [DEVICE]\n", argv[0]);
    return 2;
  }
  const std::unique_ptr<Dataset> dataset = open_folder(argv[1]);
  show_parts(*dataset, argc > 2 ? std::atoll(argv[2]) : dataset->size());
  show_loader(*dataset, argc > 3 ? argv[3] : "cpu");
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.kind());
}
