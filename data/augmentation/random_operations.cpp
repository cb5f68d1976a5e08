#include "data/augmentation/random_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "data/augmentation/image_operations.h"

namespace twiddle {

namespace {

double between(double least, double most, const RandomSequence& random, std::int64_t draw) {
  return least + (most - least) * random.uniform_double(draw);
}

// The strength of one of RandAugment's operations: a magnitude from 0 to 30 and a sign of 1 or -1.
struct Strength {
  std::int64_t magnitude;
  int sign;
  double share() const { return static_cast<double>(magnitude) / 30; }
  float factor() const { return static_cast<float>(1 + sign * 0.9 * share()); }
  double slope() const { return sign * 0.3 * share(); }
  // 150 / 331 of the side times the share, truncated. In integers: doubles make 54.99... of 55.
  int shift(int side) const { return sign * static_cast<int>(5 * magnitude * side / 331); }
};

using Operation = void (*)(Image&, const Strength&);
constexpr std::array<Operation, 14> operations_of_rand_augment{
    [](Image&, const Strength&) {},
    [](Image& image, const Strength& by) { shear_x(image, by.slope()); },
    [](Image& image, const Strength& by) { shear_y(image, by.slope()); },
    [](Image& image, const Strength& by) { translate(image, by.shift(image.width), 0); },
    [](Image& image, const Strength& by) { translate(image, 0, by.shift(image.height)); },
    [](Image& image, const Strength& by) { rotate(image, by.sign * 30 * by.share()); },
    [](Image& image, const Strength& by) { adjust_brightness(image, by.factor()); },
    [](Image& image, const Strength& by) { adjust_saturation(image, by.factor()); },
    [](Image& image, const Strength& by) { adjust_contrast(image, by.factor()); },
    [](Image& image, const Strength& by) { adjust_sharpness(image, by.factor()); },
    [](Image& image, const Strength& by) { posterize(image, 8 - static_cast<int>(std::nearbyint(4 * by.share()))); },
    [](Image& image, const Strength& by) { solarize(image, static_cast<float>(255 - 255 * by.share())); },
    [](Image& image, const Strength&) { autocontrast(image); },
    [](Image& image, const Strength&) { equalize(image); },
};

}  // namespace

void ColorJitter::apply(Image& image, RandomSequence random) const {
  const auto factor = [&](double reach, std::int64_t draw) {
    return static_cast<float>(between(std::max(0.0, 1 - reach), 1 + reach, random, draw));
  };
  std::array<int, 4> order{0, 1, 2, 3};
  for (int i = 3; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i, i + 1))]);
  for (const int which : order) {
    if (which == 0 && brightness > 0) adjust_brightness(image, factor(brightness, 4));
    if (which == 1 && contrast > 0) adjust_contrast(image, factor(contrast, 5));
    if (which == 2 && saturation > 0) adjust_saturation(image, factor(saturation, 6));
    if (which == 3 && hue > 0) adjust_hue(image, static_cast<float>(between(-hue, hue, random, 7)));
  }
}

void RandAugment::apply(Image& image, RandomSequence random) const {
  for (std::int64_t i = 0; i < operations; ++i) {
    const auto which = static_cast<std::size_t>(random.below(2 * i, operations_of_rand_augment.size()));
    const int sign = random.below(2 * i + 1, 2) == 0 ? 1 : -1;
    operations_of_rand_augment[which](image, {magnitude, sign});
  }
}

// A box that does not fit is drawn again, up to ten times.
void RandomErasing::apply(float* values, const std::vector<std::int64_t>& shape, RandomSequence random) const {
  if (random.uniform_double(0) >= probability) return;
  const std::int64_t height = shape[1], width = shape[2];
  for (std::int64_t attempt = 0; attempt < 10; ++attempt) {
    const std::int64_t draw = 1 + 4 * attempt;
    const double area = static_cast<double>(height * width) * between(least_area, most_area, random, draw);
    const double aspect = std::exp(between(std::log(least_aspect), std::log(most_aspect), random, draw + 1));
    const auto h = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area * aspect)));
    const auto w = static_cast<std::int64_t>(std::nearbyint(std::sqrt(area / aspect)));
    if (h >= height || w >= width) continue;
    const std::int64_t top = random.below(draw + 2, height - h + 1), left = random.below(draw + 3, width - w + 1);
    const RandomSequence numbers = random.split(1);
    std::int64_t number = 0;
    for (std::int64_t c = 0; c < shape[0]; ++c)
      for (std::int64_t y = top; y < top + h; ++y)
        for (std::int64_t x = left; x < left + w; ++x)
          values[(c * height + y) * width + x] = noise ? numbers.normal(number++) : 0;
    return;
  }
}

}  // namespace twiddle
