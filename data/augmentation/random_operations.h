#pragma once
#include <cstdint>
#include <vector>

#include "data/formats/dataset.h"
#include "framework/random.h"

namespace twiddle {

// torchvision.transforms.ColorJitter: factors of brightness, contrast and saturation from 1 - x to 1 + x, and at least
// 0, a turn of hue from -x to x, in an order that is drawn, too. What is 0 is left out.
struct ColorJitter {
  double brightness = 0, contrast = 0, saturation = 0, hue = 0;
  void apply(Image& image, RandomSequence random) const;
};

// torchvision.transforms.RandAugment (Cubuk et al. 2020), for tensors, with 31 magnitudes and the nearest pixel: so
// many operations, drawn from its fourteen, each with the magnitude of 0 to 30, where it has one, and a sign, where it
// has one.
struct RandAugment {
  std::int64_t operations = 2, magnitude = 9;
  void apply(Image& image, RandomSequence random) const;
};

// torchvision.transforms.RandomErasing: with a probability, a box of a drawn share of the image's area and ratio of
// height to width becomes zeros, or normal noise, one number per value. On normalised values [channels, height, width].
struct RandomErasing {
  double probability = 0.25;
  double least_area = 0.02, most_area = 0.33, least_aspect = 0.3, most_aspect = 3.3;
  bool noise = false;
  void apply(float* values, const std::vector<std::int64_t>& shape, RandomSequence random) const;
};

}  // namespace twiddle
