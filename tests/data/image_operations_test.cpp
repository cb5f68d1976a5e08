// Numbers by hand, from the formulas of torchvision/transforms/_functional_tensor.py.
#include "data/augmentation/image_operations.h"

#include "tests/data/fixtures.h"

namespace twiddle {

namespace {

template <class Operation, class... Arguments>
Bytes after(Operation operation, Image image, Arguments... arguments) {
  operation(image, arguments...);
  return image.pixels;
}

const Image grey_row{1, 1, 4, {10, 20, 30, 40}};
const Image colour{3, 1, 1, {200, 100, 50}};                // in gray: 59.78 + 58.7 + 5.7, truncated to 124
const Image two_colours{3, 1, 2, {200, 0, 100, 0, 50, 0}};  // the same, and black
const Image two_planes{2, 3, 3, {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18}};

// The second channel is the first plus 10, except for pixels from outside the image.
Bytes in_both_channels(Bytes first) {
  Bytes both = first;
  for (const std::uint8_t value : first) both.push_back(static_cast<std::uint8_t>(value == 99 ? 0 : value + 10));
  for (std::uint8_t& value : both) value = value == 99 ? 0 : value;
  return both;
}

}  // namespace

TEST(ImageOperations, Brightness) {
  const Image image{1, 1, 3, {0, 101, 255}};
  EXPECT_EQ(after(adjust_brightness, image, 0.5f), (Bytes{0, 50, 127}));
  EXPECT_EQ(after(adjust_brightness, image, 1.5f), (Bytes{0, 151, 255}));
  EXPECT_EQ(after(adjust_brightness, image, 1.0f), image.pixels);
}

TEST(ImageOperations, ContrastBlendsWithMeanGray) {
  EXPECT_EQ(after(adjust_contrast, grey_row, 2.0f), (Bytes{0, 15, 35, 55}));
  EXPECT_EQ(after(adjust_contrast, grey_row, 0.5f), (Bytes{17, 22, 27, 32}));
  EXPECT_EQ(after(adjust_contrast, two_colours, 0.5f), (Bytes{131, 31, 81, 31, 56, 31}));  // the mean is 62
}

TEST(ImageOperations, SaturationBlendsWithGrayPixel) {
  EXPECT_EQ(after(adjust_saturation, colour, 0.0f), (Bytes{124, 124, 124}));
  EXPECT_EQ(after(adjust_saturation, colour, 0.5f), (Bytes{162, 112, 87}));
  EXPECT_EQ(after(adjust_saturation, colour, 2.0f), (Bytes{255, 76, 0}));
  EXPECT_EQ(after(adjust_saturation, grey_row, 2.0f), grey_row.pixels);
}

TEST(ImageOperations, SharpnessBlendsWithSmoothedImage) {
  const Image dot{1, 3, 3, {0, 0, 0, 0, 104, 0, 0, 0, 13}};
  EXPECT_EQ(after(adjust_sharpness, dot, 0.0f)[4], 41);  // (5 * 104 + 13) / 13
  EXPECT_EQ(after(adjust_sharpness, dot, 2.0f), (Bytes{0, 0, 0, 0, 167, 0, 0, 0, 13}));
  EXPECT_EQ(after(adjust_sharpness, grey_row, 2.0f), grey_row.pixels) << "too small to be smoothed";
}

TEST(ImageOperations, RotatesHue) {
  const Image red{3, 1, 2, {255, 90, 0, 90, 0, 90}};  // and a grey, which has no hue
  EXPECT_EQ(after(adjust_hue, red, 1 / 3.0f), (Bytes{0, 90, 255, 90, 0, 90}));
  EXPECT_EQ(after(adjust_hue, red, 0.5f), (Bytes{0, 90, 255, 90, 255, 90}));
  EXPECT_EQ(after(adjust_hue, red, -0.25f), (Bytes{127, 90, 0, 90, 255, 90}));
  EXPECT_EQ(after(adjust_hue, colour, 0.0f), colour.pixels);
  EXPECT_EQ(after(adjust_hue, grey_row, 0.5f), grey_row.pixels);
}

TEST(ImageOperations, PosterizeAndSolarize) {
  EXPECT_EQ(after(posterize, {1, 1, 3, {0xab, 0x0f, 0xff}}, 4), (Bytes{0xa0, 0, 0xf0}));
  EXPECT_EQ(after(posterize, grey_row, 8), grey_row.pixels);
  EXPECT_EQ(after(solarize, {1, 1, 4, {0, 127, 128, 255}}, 127.5f), (Bytes{0, 127, 127, 0}));
}

TEST(ImageOperations, AutocontrastStretchesEachChannel) {
  EXPECT_EQ(after(autocontrast, grey_row), (Bytes{0, 85, 170, 255}));
  EXPECT_EQ(after(autocontrast, two_colours), (Bytes{255, 0, 255, 0, 255, 0}));
  EXPECT_EQ(after(autocontrast, colour), colour.pixels) << "flat channels stay";
}

// 600 pixels: a step is (255 + 255) / 255 = 2, and (darker + 1) / 2 becomes 0, 128 and 255.
TEST(ImageOperations, EqualizeSpreadsTheHistogram) {
  Image image{1, 20, 30, Bytes(255, 10)};
  image.pixels.insert(image.pixels.end(), 255, 50);
  image.pixels.insert(image.pixels.end(), 90, 200);
  const Bytes equal = after(equalize, image);
  EXPECT_EQ(equal[0], 0);
  EXPECT_EQ(equal[255], 128);
  EXPECT_EQ(equal[510], 255);
  EXPECT_EQ(after(equalize, grey_row), grey_row.pixels) << "too few pixels for a step";
}

// 99 marks pixels from outside the image.
TEST(ImageOperations, MovePixels) {
  EXPECT_EQ(after(shear_x, two_planes, 0.4), in_both_channels({0, 1, 2, 4, 5, 99, 7, 8, 99}));
  EXPECT_EQ(after(shear_y, two_planes, 0.4), in_both_channels({0, 4, 5, 3, 7, 8, 6, 99, 99}));
  EXPECT_EQ(after(translate, two_planes, 1, -1), in_both_channels({99, 3, 4, 99, 6, 7, 99, 99, 99}));
  EXPECT_EQ(after(rotate, two_planes, 90.0), in_both_channels({2, 5, 8, 1, 4, 7, 0, 3, 6}));
  EXPECT_EQ(after(rotate, {1, 2, 4, {0, 1, 2, 3, 4, 5, 6, 7}}, 180.0), (Bytes{7, 6, 5, 4, 3, 2, 1, 0}));
}

}  // namespace twiddle
