// Augmentations of given images, with given parameters or seeds; the results go to a file, for torch_augment.py to hold
// against torchvision's.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <string>

#include "data/augmentation/image_operations.h"
#include "data/augmentation/mixing.h"
#include "data/augmentation/random_operations.h"
#include "data/loader.h"
#include "framework/error.h"
#include "models/checkpoints/safetensors.h"

namespace twiddle {

namespace {

constexpr const char* usage =
    "twiddle_augment IMAGES RESULTS OPERATION=NUMBER,... ...\n"
    "IMAGES has `images`, whole numbers from 0 to 255 as F32 (images, channels, height, width); RESULTS has what each\n"
    "operation makes of them under its text, and next to it the targets' shares, `TEXT.shares`, where it mixes images.";

using Numbers = std::vector<double>;

struct Batch {
  std::vector<std::int64_t> shape;  // images, channels, height, width
  std::vector<float> values;

  std::size_t image_size() const { return static_cast<std::size_t>(shape[1] * shape[2] * shape[3]); }
  std::vector<std::int64_t> image_shape() const { return {shape[1], shape[2], shape[3]}; }
};

std::uint64_t seed_of(const Numbers& numbers) {
  return static_cast<std::uint64_t>(numbers.back());
}

// With their parameters, or with those that a seed draws, which is the last number.
using ImageOperation = std::function<void(Image&, const Numbers&)>;
const std::map<std::string, ImageOperation>& image_operations() {
  static const std::map<std::string, ImageOperation> operations{
      {"brightness", [](Image& image, const Numbers& n) { adjust_brightness(image, static_cast<float>(n.at(0))); }},
      {"contrast", [](Image& image, const Numbers& n) { adjust_contrast(image, static_cast<float>(n.at(0))); }},
      {"saturation", [](Image& image, const Numbers& n) { adjust_saturation(image, static_cast<float>(n.at(0))); }},
      {"hue", [](Image& image, const Numbers& n) { adjust_hue(image, static_cast<float>(n.at(0))); }},
      {"color_jitter",
       [](Image& image, const Numbers& n) {
         ColorJitter{n.at(0), n.at(1), n.at(2), n.at(3)}.apply(image, RandomSequence{seed_of(n)});
       }},
      {"rand_augment",
       [](Image& image, const Numbers& n) {
         RandAugment{1, static_cast<std::int64_t>(n.at(0))}.apply(image, RandomSequence{seed_of(n)});
       }},
  };
  return operations;
}

// Converts each image to bytes, applies the operation, and converts it back.
void change_images(Batch& batch, const ImageOperation& operation, const Numbers& numbers) {
  for (float* values = batch.values.data(); values != batch.values.data() + batch.values.size();
       values += batch.image_size()) {
    Image image{static_cast<int>(batch.shape[1]),
                static_cast<int>(batch.shape[2]),
                static_cast<int>(batch.shape[3]),
                {values, values + batch.image_size()}};
    operation(image, numbers);
    std::copy(image.pixels.begin(), image.pixels.end(), values);
  }
}

// Every image with the same seed: its least and its largest area, its least and its largest aspect.
void erase(Batch& batch, const Numbers& n) {
  const RandomErasing erasing{1, n.at(0), n.at(1), n.at(2), n.at(3)};
  for (std::size_t at = 0; at < batch.values.size(); at += batch.image_size())
    erasing.apply(batch.values.data() + at, batch.image_shape(), RandomSequence{seed_of(n)});
}

// With as many classes as images, the first of the first class, and so on.
std::vector<float> mix(Batch& batch, const Mixing& mixing, std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(batch.shape[0]);
  std::vector<float> shares(count * count);
  for (std::size_t i = 0; i < count; ++i) shares[i * count + i] = 1;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t i = 0; i < batch.shape[0] / 2; ++i) pairs.emplace_back(i, batch.shape[0] - 1 - i);
  mix(mixing, RandomSequence{seed}, pairs, batch.image_shape(), batch.values.data(), batch.shape[0], shares.data());
  return shares;
}

HostArray array_of(const std::vector<std::int64_t>& shape, const std::vector<float>& values) {
  HostArray array{DType::f32, shape, std::vector<std::uint8_t>(values.size() * sizeof(float))};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

Batch read_batch(const std::string& path) {
  const SafeTensors contents = read_safetensors(path);
  const auto found = contents.arrays.find("images");
  if (found == contents.arrays.end() || found->second.shape.size() != 4) throw Error(ErrorKind::data, usage);
  const HostArray& array = found->second;
  Batch batch{array.shape, std::vector<float>(array.bytes.size() / sizeof(float))};
  std::memcpy(batch.values.data(), array.bytes.data(), array.bytes.size());
  return batch;
}

Numbers numbers_of(const std::string& text) {
  Numbers numbers;
  std::istringstream stream(text);
  for (std::string number; std::getline(stream, number, ',');) numbers.push_back(std::atof(number.c_str()));
  return numbers;
}

void apply(const std::string& text, Batch batch, SafeTensors& results) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) throw Error(ErrorKind::config, usage);
  const std::string name = text.substr(0, equals);
  const Numbers numbers = numbers_of(text.substr(equals + 1));
  const auto add_shares = [&](const Mixing& mixing) {
    const std::vector<float> shares = mix(batch, mixing, seed_of(numbers));
    results.arrays[text + ".shares"] = array_of({batch.shape[0], batch.shape[0]}, shares);
  };
  if (name == "mixup")
    add_shares({.mixup = numbers.at(0)});
  else if (name == "cutmix")
    add_shares({.cutmix = numbers.at(0)});
  else if (name == "random_erasing")
    erase(batch, numbers);
  else if (const auto found = image_operations().find(name); found != image_operations().end())
    change_images(batch, found->second, numbers);
  else
    throw Error(ErrorKind::config, usage);
  results.arrays[text] = array_of(batch.shape, batch.values);
}

void run(const std::vector<std::string>& words) {
  if (words.size() < 3) throw Error(ErrorKind::config, usage);
  const Batch batch = read_batch(words[0]);
  SafeTensors results;
  for (std::size_t i = 2; i < words.size(); ++i) apply(words[i], batch, results);
  write_safetensors(words[1], results);
}

}  // namespace

}  // namespace twiddle

int main(int argc, char** argv) {
  try {
    twiddle::run({argv + 1, argv + argc});
    return 0;
  } catch (const twiddle::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.kind());
  }
}
