#pragma once
#include <functional>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "framework/random.h"

namespace twiddle {

// The steps between a decoded image and the floats a network reads: resize, crops, flips, then (value / 255 - mean) /
// deviation. A step draws its random numbers from the sequence it is handed, which the loader derives from (seed,
// epoch, index).
class Augment {
 public:
  using Step = std::function<void(Image&, RandomSequence)>;

  // Reads the list at `key` (`augment:` for training, `eval_augment:` for validation) and `normalize`. Steps: resize: N
  // or [h, w] (N: the shorter side), center_crop, random_crop, random_resized_crop, hflip, pad_crop: {pad: 4, size:
  // 32}.
  Augment(Params& data, const char* key, const std::vector<std::int64_t>& image_shape);

  // Applies the steps and writes channels x height x width floats. Throws an Error of kind data where the result has
  // another shape.
  void operator()(Image& image, RandomSequence random, float* out) const;
  std::string describe() const;

 private:
  std::vector<Step> steps_;
  std::vector<std::string> names_;
  std::vector<float> mean_, deviation_;  // one a channel, in units of 1/255
  std::vector<std::int64_t> shape_;
};

// The steps themselves, on bytes. Bilinear; shrinking averages over the area that a pixel covers.
Image resized(const Image& image, int height, int width);
Image cropped(const Image& image, int top, int left, int height, int width);  // outside the image: zeros
void flip_horizontally(Image& image);

}  // namespace twiddle
