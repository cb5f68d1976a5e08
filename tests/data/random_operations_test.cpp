#include "data/augmentation/random_operations.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "data/augmentation/image_operations.h"
#include "tests/data/fixtures.h"

namespace twiddle {

namespace {

Image colourful() {
  Image image{3, 20, 24, {}};
  for (int i = 0; i < 3 * 20 * 24; ++i)
    image.pixels.push_back(static_cast<std::uint8_t>(RandomSequence{7}.below(i, 200) + 20));
  return image;
}

template <class Change>
Bytes changed(const Change& change) {
  Image image = colourful();
  change(image);
  return image.pixels;
}

Bytes augmented(const RandAugment& augment, std::uint64_t seed) {
  return changed([&](Image& image) { augment.apply(image, RandomSequence{seed}); });
}

}  // namespace

// Magnitude 9 of 30, by torchvision's table: 0.3 of the largest shear, shift, angle and factor; posterize to
// 8 - round(1.2) bits, solarize from 255 - 76.5 on.
TEST(RandAugment, DrawsFromTorchvisionsOperations) {
  std::set<Bytes> expected{colourful().pixels, changed([](Image& image) { posterize(image, 7); }),
                           changed([](Image& image) { solarize(image, 178.5f); }), changed(autocontrast),
                           changed(equalize)};
  for (const int sign : {1, -1}) {
    const auto factor = static_cast<float>(1 + sign * 0.27);
    expected.insert({changed([&](Image& image) { shear_x(image, sign * 0.09); }),
                     changed([&](Image& image) { shear_y(image, sign * 0.09); }),
                     changed([&](Image& image) { translate(image, sign * 3, 0); }),  // 150 / 331 * 24 * 0.3 = 3.26
                     changed([&](Image& image) { translate(image, 0, sign * 2); }),  // 150 / 331 * 20 * 0.3 = 2.72
                     changed([&](Image& image) { rotate(image, sign * 9.0); }),
                     changed([&](Image& image) { adjust_brightness(image, factor); }),
                     changed([&](Image& image) { adjust_saturation(image, factor); }),
                     changed([&](Image& image) { adjust_contrast(image, factor); }),
                     changed([&](Image& image) { adjust_sharpness(image, factor); })});
  }
  EXPECT_EQ(expected.size(), 5u + 2 * 9);
  std::set<Bytes> drawn;
  for (std::uint64_t seed = 0; seed < 600; ++seed) drawn.insert(augmented({.operations = 1, .magnitude = 9}, seed));
  EXPECT_EQ(drawn, expected);
}

// 150 / 331 * 331 * 11 / 30 is 55, which doubles miss by one bit.
TEST(RandAugment, TruncatesShiftsExactly) {
  const Image row{1, 1, 331, Bytes(331, 200)};
  std::set<std::ptrdiff_t> black;  // pixels that came from outside
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Image image = row;
    RandAugment{.operations = 1, .magnitude = 11}.apply(image, RandomSequence{seed});
    black.insert(std::count(image.pixels.begin(), image.pixels.end(), 0));
  }
  EXPECT_TRUE(black.contains(55));
  EXPECT_FALSE(black.contains(54));
}

TEST(RandAugment, DependsOnlyOnSeed) {
  EXPECT_EQ(augmented({}, 3), augmented({}, 3));
  std::set<Bytes> drawn;
  for (std::uint64_t seed = 0; seed < 100; ++seed) drawn.insert(augmented({}, seed));
  EXPECT_GT(drawn.size(), 60u);
  EXPECT_EQ(augmented({.operations = 0}, 1), colourful().pixels);
}

TEST(ColorJitter, DrawsFactorsFromItsRange) {
  int least = 255, most = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Image image{1, 1, 1, {100}};
    ColorJitter{.brightness = 0.4}.apply(image, RandomSequence{seed});
    least = std::min<int>(least, image.pixels[0]), most = std::max<int>(most, image.pixels[0]);
  }
  EXPECT_NEAR(least, 61, 1);
  EXPECT_NEAR(most, 138, 2);
}

// Black and white: contrast about the mean of a dimmed image differs from dimming after contrast.
TEST(ColorJitter, DrawsOrderOfOperations) {
  const ColorJitter jitter{.brightness = 0.3, .contrast = 0.3};
  const auto in_order = [&](std::uint64_t seed, bool brightness_first) {
    const RandomSequence random{seed};
    const auto factor = [&](std::int64_t draw) { return static_cast<float>(0.7 + 0.6 * random.uniform_double(draw)); };
    Image image = colourful();
    if (brightness_first) adjust_brightness(image, factor(4));
    adjust_contrast(image, factor(5));
    if (!brightness_first) adjust_brightness(image, factor(4));
    return image.pixels;
  };
  int first = 0, last = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Bytes result = changed([&](Image& image) { jitter.apply(image, RandomSequence{seed}); });
    const bool is_first = result == in_order(seed, true), is_last = result == in_order(seed, false);
    EXPECT_TRUE(is_first || is_last) << seed;
    first += is_first, last += is_last;
  }
  EXPECT_GT(first, 5);
  EXPECT_GT(last, 5);
}

// A quarter of 8x8 as a square: 4x4, anywhere, in all channels at once.
TEST(RandomErasing, ErasesABox) {
  std::set<std::size_t> corners;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::vector<float> values(2 * 64, 1);
    RandomErasing{.probability = 1, .least_area = 0.25, .most_area = 0.25, .least_aspect = 1, .most_aspect = 1}.apply(
        values.data(), {2, 8, 8}, RandomSequence{seed});
    const auto corner = static_cast<std::size_t>(std::find(values.begin(), values.end(), 0.0f) - values.begin());
    ASSERT_LT(corner, 64u);
    std::vector<float> expected(2 * 64, 1);
    for (std::size_t c = 0; c < 2; ++c)
      for (std::size_t y = 0; y < 4; ++y)
        for (std::size_t x = 0; x < 4; ++x) expected[64 * c + corner + 8 * y + x] = 0;
    EXPECT_EQ(values, expected);
    corners.insert(corner);
  }
  EXPECT_EQ(corners.size(), 25u);
}

TEST(RandomErasing, DrawsProbabilityAreaAndAspect) {
  int erased = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::vector<float> values(32 * 32, 1);
    RandomErasing{}.apply(values.data(), {1, 32, 32}, RandomSequence{seed});
    const auto zeros = std::count(values.begin(), values.end(), 0.0f);
    erased += zeros > 0;
    EXPECT_LE(zeros, 0.36 * 32 * 32);
    EXPECT_TRUE(zeros == 0 || zeros >= 0.015 * 32 * 32);
  }
  EXPECT_NEAR(erased, 250, 55);
}

TEST(RandomErasing, FillsWithNoiseIfSet) {
  std::vector<float> values(64 * 64, 100);
  RandomErasing{.probability = 1, .least_area = 0.3, .noise = true}.apply(values.data(), {1, 64, 64},
                                                                          RandomSequence{1});
  double sum = 0, squares = 0, count = 0;
  for (const float value : values)
    if (value != 100) sum += value, squares += value * value, ++count;
  EXPECT_GT(count, 1000);
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(squares / count, 1, 0.15);
}

TEST(RandomErasing, LeavesImageIfNoBoxFits) {
  std::vector<float> values(16, 1);
  RandomErasing{.probability = 1, .least_area = 1, .most_area = 1, .least_aspect = 1, .most_aspect = 1}.apply(
      values.data(), {1, 4, 4}, RandomSequence{1});
  EXPECT_EQ(values, std::vector<float>(16, 1));
}

}  // namespace twiddle
