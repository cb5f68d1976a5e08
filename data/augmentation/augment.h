#pragma once
#include <array>
#include <functional>
#include <string>
#include <vector>

#include "data/images/image.h"
#include "framework/place.h"
#include "framework/random.h"

namespace twiddle {

class Diagnostics;
class Params;
struct ConfigNode;

// The steps between a decoded image and the floats a network reads: resize, crops, flips, then (value / 255 - mean) /
// deviation. A step draws its random numbers from the sequence it is handed, which the loader derives from (seed,
// epoch, index).
class Augment {
 public:
  // What a step does to pixels: an image that is the target of another is moved as that one is, and keeps its colours.
  enum class Changes : std::uint8_t { places, colours, both };

  struct Step {
    std::function<void(Image&, RandomSequence)> apply;  // empty if the step is a late one
    std::string name;                                   // in a summary
    Changes changes = Changes::places;
    // Comes after all others, on the values that the network reads, [channels, height, width].
    std::function<void(float* values, const std::vector<std::int64_t>& shape, RandomSequence)> apply_late = {};
  };

  // Reads the list at `key` (`augment:` for training, `eval_augment:` for validation) and `normalize`. A step is a name
  // or {name: options}; a size is N or [height, width] and the model's input where it is left out:
  //   resize (N: the shorter side), center_crop, random_crop, random_resized_crop: {size, scale: [0.08, 1], ratio:
  //   [0.75, 1.3333]}, pad_crop: {pad: 4, size} or pad_crop: 4, hflip: 0.5 (the probability), color_jitter,
  //   rand_augment and random_erasing with the members of data/augmentation/random_operations.h.
  // normalize: none, imagenet, cifar10 or {mean, std}, a number or one per channel. A shape of zeros is one that is not
  // known: good for reading the options, none of which are checked against it.
  Augment(Params& data, const char* key, const std::vector<std::int64_t>& image_shape);

  // Applies the steps and writes channels x height x width floats. Throws an Error of kind config where the result has
  // another shape than the model's input: an error of the config, not of the image.
  void operator()(Image& image, RandomSequence random, float* out) const;
  // The same for an image that is the target of another, given the other's random numbers: without the steps that
  // change colours and the late ones. Throws where a step changes colours and places at once.
  void apply_to_target(Image& target, RandomSequence random, float* out) const;
  // Back to bytes, from values as operator() writes them; values out of a byte's range are clamped.
  Image picture(const float* values) const;
  float bytes_a_unit(std::int64_t channel) const;  // steps of a byte in a step of 1 there
  float byte_of_zero(std::int64_t channel) const;  // what becomes 0 there: 255 times the mean of `normalize`
  std::string describe() const;
  const std::vector<std::int64_t>& image_shape() const { return shape_; }

 private:
  void expect_shape(const Image& image) const;
  void write_values(const Image& image, float* out) const;
  std::string where() const;

  std::string key_;
  Place place_;  // of the steps in the config, or of the section where there are none
  std::vector<Step> steps_;
  std::string normalization_;        // its name; empty: none
  std::vector<float> mean_, scale_;  // one per channel, on bytes: (value - mean) * scale
  std::vector<std::int64_t> shape_;
};

// Reads one entry of a list of steps, and replaces it by one with every option as it is used. Mistakes go to the
// diagnostics; then the step does nothing.
Augment::Step read_augment_step(ConfigNode& entry, std::array<int, 2> model_size, Diagnostics& diagnostics);

// A part of an image.
struct Window {
  int top = 0, left = 0, height = 0, width = 0;
};

// The steps themselves, on bytes. Bilinear; shrinking averages over the area that a pixel covers.
Image resized(const Image& image, int height, int width);
Image resized(const Image& image, const Window& window, int height, int width);  // of what the window shows alone
Image cropped(const Image& image, int top, int left, int height, int width);     // outside the image: zeros
void flip_horizontally(Image& image);

}  // namespace twiddle
