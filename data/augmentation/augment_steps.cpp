#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "data/augmentation/augment.h"
#include "data/augmentation/random_operations.h"
#include "framework/config/params.h"
#include "framework/text.h"

namespace twiddle {

namespace {

constexpr int largest_side = 1 << 15;

using Size = std::array<int, 2>;  // height, width

std::string to_text(const Size& size) {
  return size[0] == size[1] ? std::to_string(size[0]) : join(size[0], "x", size[1]);
}

// One entry as its reader sees it: options are at `name: value`, where value may be a mapping.
struct Entry {
  std::string name;
  Params params;  // knows the one key `name`
  Size model_size;

  bool has_options() {
    const ConfigNode* value = params.node(name);
    return value && value->kind == ConfigNode::Kind::mapping;
  }
  bool has_value() {
    const ConfigNode* value = params.node(name);
    return value && value->kind != ConfigNode::Kind::null;
  }
  Size size() { return has_value() ? params.pair(name, model_size, 1, largest_side) : model_size; }
};

// To the nearest whole number, a half to the even one: Python's round(), which torchvision uses.
int rounded(double value) {
  return static_cast<int>(std::nearbyint(value));
}

Augment::Step resize(Entry& entry) {
  const ConfigNode* value = entry.params.node(entry.name);
  const Size size = entry.size();
  if (!value || value->kind != ConfigNode::Kind::scalar)
    return {[size](Image& image, RandomSequence) { image = resized(image, size[0], size[1]); },
            join("resize ", size[0], "x", size[1])};
  // As in torchvision, the longer side is truncated.
  return {[side = size[0]](Image& image, RandomSequence) {
            const int shorter = std::min(image.height, image.width);
            const auto scaled = [&](int x) {
              return static_cast<int>(std::min<std::int64_t>(std::int64_t(x) * side / shorter, largest_side));
            };
            image = resized(image, scaled(image.height), scaled(image.width));
          },
          join("resize ", size[0])};
}

// A network would learn from black borders, without any error.
void expect_larger(const std::string& step, const Image& image, const Size& size) {
  if (image.height >= size[0] && image.width >= size[1]) return;
  throw Error(ErrorKind::config,
              join("the image is ", image.height, "x", image.width, ", too small for `", step, ": ", to_text(size),
                   "`; put `resize` or `pad_crop` before it, or use one of them instead"));
}

Augment::Step center_crop(Entry& entry) {
  const Size size = entry.size();
  return {[size](Image& image, RandomSequence) {
            expect_larger("center_crop", image, size);
            const int top = rounded((image.height - size[0]) / 2.0), left = rounded((image.width - size[1]) / 2.0);
            image = cropped(image, top, left, size[0], size[1]);
          },
          "center_crop " + to_text(size)};
}

// A window of `size` anywhere in the image, which is at least as large.
void crop_anywhere(Image& image, const Size& size, RandomSequence random) {
  const auto offset = [&](std::int64_t draw, int range) { return static_cast<int>(random.below(draw, range + 1)); };
  image = cropped(image, offset(0, image.height - size[0]), offset(1, image.width - size[1]), size[0], size[1]);
}

Augment::Step random_crop(Entry& entry) {
  const Size size = entry.size();
  return {[size](Image& image, RandomSequence random) {
            expect_larger("random_crop", image, size);
            crop_anywhere(image, size, random);
          },
          "random_crop " + to_text(size)};
}

Augment::Step pad_crop(Entry& entry) {
  int pad = 4;
  Size size = entry.model_size;
  if (entry.has_options() || !entry.has_value()) {
    Params options = entry.params.child(entry.name);
    pad = static_cast<int>(options.integer("pad", 4, 0, largest_side));
    size = options.pair("size", size, 1, largest_side);
    options.finish();
  } else {
    pad = static_cast<int>(entry.params.integer(entry.name, 4, 0, largest_side));
  }
  return {[pad, size](Image& image, RandomSequence random) {
            image = cropped(image, -pad, -pad, image.height + 2 * pad, image.width + 2 * pad);
            expect_larger("pad_crop", image, size);
            crop_anywhere(image, size, random);
          },
          join("pad_crop ", pad, ", ", to_text(size))};
}

Augment::Step hflip(Entry& entry) {
  const bool empty = entry.params.has(entry.name) && !entry.has_value();  // {hflip: }
  const double probability = empty ? 0.5 : entry.params.number(entry.name, 0.5, 0, 1);
  return {[probability](Image& image, RandomSequence random) {
            if (random.uniform(0) < probability) flip_horizontally(image);
          },
          probability == 0.5 ? "hflip" : "hflip " + format_number(probability)};
}

struct Range {
  double least, most;
};

Range read_range(Params& options, const char* key, Range fallback, double most) {
  const std::vector<double> values = options.numbers(key, {fallback.least, fallback.most});
  if (values.size() == 2 && values[0] > 0 && values[0] <= values[1] && values[1] <= most) return {values[0], values[1]};
  options.error(key, join("'", key, "' must be two numbers, the smaller first, above 0 and at most ", most));
  return fallback;
}

// The window of torchvision's RandomResizedCrop: a share of the area and a ratio of the sides, drawn up to ten times;
// then the largest centred window of an allowed ratio.
Window random_window(const Image& image, Range scale, Range ratio, RandomSequence random) {
  const double area = double(image.height) * image.width;
  for (std::int64_t attempt = 0; attempt < 10; ++attempt) {
    const double share = scale.least + (scale.most - scale.least) * random.uniform_double(4 * attempt);
    const double low = std::log(ratio.least), high = std::log(ratio.most);
    const double sides = std::exp(low + (high - low) * random.uniform_double(4 * attempt + 1));
    const double width = std::sqrt(area * share * sides), height = std::sqrt(area * share / sides);
    if (width > image.width + 1.0 || height > image.height + 1.0) continue;  // may be too large for an int
    const int h = rounded(height), w = rounded(width);
    if (w < 1 || h < 1 || w > image.width || h > image.height) continue;
    const auto top = static_cast<int>(random.below(4 * attempt + 2, image.height - h + 1));
    const auto left = static_cast<int>(random.below(4 * attempt + 3, image.width - w + 1));
    return {top, left, h, w};
  }
  const double sides = std::clamp(double(image.width) / image.height, ratio.least, ratio.most);
  const int w = std::clamp(rounded(image.height * sides), 1, image.width);
  const int h = std::clamp(rounded(image.width / sides), 1, image.height);
  return {(image.height - h) / 2, (image.width - w) / 2, h, w};
}

Augment::Step random_resized_crop(Entry& entry) {
  Range scale{0.08, 1}, ratio{3.0 / 4, 4.0 / 3};
  Size size = entry.model_size;
  if (entry.has_options() || !entry.has_value()) {
    Params options = entry.params.child(entry.name);
    size = options.pair("size", size, 1, largest_side);
    scale = read_range(options, "scale", scale, 1);
    ratio = read_range(options, "ratio", ratio, 1000);
    options.finish();
  } else {
    size = entry.size();
  }
  return {[size, scale, ratio](Image& image, RandomSequence random) {
            image = resized(image, random_window(image, scale, ratio, random), size[0], size[1]);
          },
          "random_resized_crop " + to_text(size)};
}

Augment::Step color_jitter(Entry& entry) {
  ColorJitter jitter;
  Params options = entry.params.child(entry.name);
  jitter.brightness = options.number("brightness", 0.0, 0, 100);
  jitter.contrast = options.number("contrast", 0.0, 0, 100);
  jitter.saturation = options.number("saturation", 0.0, 0, 100);
  jitter.hue = options.number("hue", 0.0, 0, 0.5);
  options.finish();
  if (jitter.brightness + jitter.contrast + jitter.saturation + jitter.hue == 0)
    entry.params.error(entry.name, "'color_jitter' changes nothing", "such as {brightness: 0.4, contrast: 0.4}");
  return {[jitter](Image& image, RandomSequence random) { jitter.apply(image, random); },
          join("color_jitter ", format_number(jitter.brightness), ", ", format_number(jitter.contrast), ", ",
               format_number(jitter.saturation), ", ", format_number(jitter.hue)),
          Augment::Changes::colours};
}

Augment::Step rand_augment(Entry& entry) {
  RandAugment augment;
  Params options = entry.params.child(entry.name);
  augment.operations = options.integer("operations", augment.operations, 0, 1000);
  augment.magnitude = options.integer("magnitude", augment.magnitude, 0, 30);
  options.finish();
  return {[augment](Image& image, RandomSequence random) { augment.apply(image, random); },
          join("rand_augment ", augment.operations, " of magnitude ", augment.magnitude), Augment::Changes::both};
}

Augment::Step random_erasing(Entry& entry) {
  RandomErasing erasing;
  Params options = entry.params.child(entry.name);
  erasing.probability = options.number("probability", erasing.probability, 0, 1);
  const Range area = read_range(options, "area", {erasing.least_area, erasing.most_area}, 1);
  const Range aspect = read_range(options, "aspect", {erasing.least_aspect, erasing.most_aspect}, 1000);
  erasing.least_area = area.least, erasing.most_area = area.most;
  erasing.least_aspect = aspect.least, erasing.most_aspect = aspect.most;
  erasing.noise = options.choice("fill", "zeros", {"zeros", "noise"}) == "noise";
  options.finish();
  return {{},
          join("random_erasing ", format_number(erasing.probability), erasing.noise ? ", noise" : ""),
          Augment::Changes::places,
          [erasing](float* values, const std::vector<std::int64_t>& shape, RandomSequence random) {
            erasing.apply(values, shape, random);
          }};
}

using Reader = Augment::Step (*)(Entry&);
const std::map<std::string, Reader>& step_readers() {
  static const std::map<std::string, Reader> readers{
      {"resize", resize},
      {"center_crop", center_crop},
      {"random_crop", random_crop},
      {"pad_crop", pad_crop},
      {"hflip", hflip},
      {"random_resized_crop", random_resized_crop},
      {"color_jitter", color_jitter},
      {"rand_augment", rand_augment},
      {"random_erasing", random_erasing},
  };
  return readers;
}

}  // namespace

Augment::Step read_augment_step(ConfigNode& entry, std::array<int, 2> model_size, Diagnostics& diagnostics) {
  const bool plain = entry.kind == ConfigNode::Kind::scalar;
  if (!plain && (entry.kind != ConfigNode::Kind::mapping || entry.entries.size() != 1)) {
    diagnostics.add(entry.place, "an augment step is a name, or one name with its options", "such as '- resize: 256'");
    return {};
  }
  const std::string name = plain ? entry.text : entry.entries.front().key;
  const auto reader = step_readers().find(name);
  if (reader == step_readers().end()) {
    std::vector<std::string> known;
    for (const auto& [step, read] : step_readers()) known.push_back(step);
    diagnostics.add(plain ? entry.place : entry.entries.front().place, unknown_name("augment step", name, known));
    return {};
  }
  ConfigNode no_options;
  no_options.place = entry.place;
  Entry options{name, Params(plain ? no_options : entry, name, diagnostics), model_size};
  Augment::Step step = reader->second(options);
  if (ConfigNode used = options.params.used(); used.kind != ConfigNode::Kind::null) entry = std::move(used);
  return step;
}

}  // namespace twiddle
