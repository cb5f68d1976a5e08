// Where the time of one training image goes: reading the file, decoding, each step of `augment:`, and the floats.
// usage: twiddle_image_bench FOLDER [IMAGES]   on one core; FOLDER is an image_folder
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "data/augment_steps.h"
#include "data/files.h"

using namespace twiddle;

namespace {

using Clock = std::chrono::steady_clock;

ConfigNode scalar(const std::string& text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::scalar, node.text = text;
  return node;
}

std::unique_ptr<Dataset> open_folder(const std::string& path) {
  Diagnostics diagnostics;
  ConfigNode options;
  options.kind = ConfigNode::Kind::mapping;
  options.entries.push_back({"path", {}, scalar(path)});
  Params params(options, "image_folder", diagnostics);
  const auto source = builtin_datasets().make("image_folder", {"", {3, 224, 224}, 0}, params);
  diagnostics.throw_if_any();
  return source->open();
}

Augment only_normalize() {
  Diagnostics diagnostics;
  ConfigNode options;
  options.kind = ConfigNode::Kind::mapping;
  options.entries.push_back({"normalize", {}, scalar("imagenet")});
  Params params(options, "data", diagnostics);
  return Augment(params, "augment", {3, 224, 224});
}

AugmentStep step(const char* name) {
  Diagnostics diagnostics;
  return read_augment_step(scalar(name), {224, 224}, diagnostics);
}

// Microseconds an image of each part, summed over images; then their quickest of several rounds.
struct Times {
  double read = 0, decode = 0, window = 0, flip = 0, floats = 0;

  double sum() const { return read + decode + window + flip + floats; }
};

Times one_round(const Dataset& dataset, std::int64_t images) {
  const AugmentStep window = step("random_resized_crop"), flip = step("hflip");
  const Augment normalize = only_normalize();
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

int run(const std::string& folder, std::int64_t images) {
  const std::unique_ptr<Dataset> dataset = open_folder(folder);
  if (images == 0) images = dataset->size();
  Times best = one_round(*dataset, images);
  for (int round = 1; round < 5; ++round) {
    const Times times = one_round(*dataset, images);
    if (times.sum() < best.sum()) best = times;
  }
  std::printf("%s; one core, microseconds an image, the quickest of 5 rounds over %lld images\n\n",
              dataset->describe().c_str(), static_cast<long long>(images));
  std::printf("| read | decode | random_resized_crop 224 | hflip | normalize | together | images/s |\n");
  std::printf("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  std::printf("| %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f |\n", best.read, best.decode, best.window, best.flip,
              best.floats, best.sum(), 1e6 / best.sum());
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [IMAGES]\n", argv[0]);
    return 2;
  }
  return run(argv[1], argc > 2 ? std::atoll(argv[2]) : 0);
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.kind());
}
