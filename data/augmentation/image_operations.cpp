#include "data/augmentation/image_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace twiddle {

namespace {

std::size_t plane_of(const Image& image) {
  return static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width);
}

std::uint8_t blended(std::uint8_t value, float with, float factor) {
  return static_cast<std::uint8_t>(std::clamp(factor * static_cast<float>(value) + (1 - factor) * with, 0.0f, 255.0f));
}

// The luma of ITU-R 601-2.
std::vector<std::uint8_t> grey_of(const Image& image) {
  if (image.channels != 3) return image.pixels;
  const std::size_t plane = plane_of(image);
  std::vector<std::uint8_t> grey(plane);
  const std::uint8_t *r = image.pixels.data(), *g = r + plane, *b = g + plane;
  for (std::size_t i = 0; i < plane; ++i)
    grey[i] = static_cast<std::uint8_t>(0.2989f * static_cast<float>(r[i]) + 0.587f * static_cast<float>(g[i]) +
                                        0.114f * static_cast<float>(b[i]));
  return grey;
}

// The center of the 3x3 window weighs 5, the others 1; border pixels stay unchanged.
std::vector<std::uint8_t> smoothed(const Image& image) {
  std::vector<std::uint8_t> result = image.pixels;
  const auto width = static_cast<std::ptrdiff_t>(image.width);
  for (int c = 0; c < image.channels; ++c)
    for (int y = 1; y + 1 < image.height; ++y)
      for (int x = 1; x + 1 < image.width; ++x) {
        const std::ptrdiff_t at = (std::ptrdiff_t(c) * image.height + y) * width + x;
        const std::uint8_t* middle = image.pixels.data() + at;
        int sum = 4 * *middle;
        for (const std::ptrdiff_t row : {-width, std::ptrdiff_t(0), width})
          sum += middle[row - 1] + middle[row] + middle[row + 1];
        result[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(std::nearbyint(static_cast<float>(sum) / 13));
      }
  return result;
}

// Hue, saturation and value, each from 0 to 1.
using Colour = std::array<float, 3>;

Colour hsv_of(float r, float g, float b) {
  const float most = std::max({r, g, b}), least = std::min({r, g, b}), range = most - least;
  if (range == 0) return {0, 0, most};
  const float rc = (most - r) / range, gc = (most - g) / range, bc = (most - b) / range;
  const float sixths = most == r ? bc - gc : most == g ? 2 + rc - bc : 4 + gc - rc;
  return {std::fmod(sixths / 6 + 1, 1.0f), range / most, most};
}

Colour rgb_of(float h, float s, float v) {
  const float sixth = std::floor(h * 6), f = h * 6 - sixth;
  const auto share = [v](float x) { return std::clamp(v * (1 - x), 0.0f, 1.0f); };
  const float p = share(s), q = share(s * f), t = share(s * (1 - f));
  switch (static_cast<int>(sixth) % 6) {
    case 0:
      return {v, t, p};
    case 1:
      return {q, v, p};
    case 2:
      return {p, v, t};
    case 3:
      return {p, q, v};
    case 4:
      return {t, p, v};
    default:
      return {v, p, q};
  }
}

// change(plane, count) for each channel.
template <class Change>
void each_plane(Image& image, const Change& change) {
  const std::size_t plane = plane_of(image);
  for (int c = 0; c < image.channels; ++c) change(image.pixels.data() + static_cast<std::size_t>(c) * plane, plane);
}

// source(x, y) gives the place that a pixel is taken from.
template <class Source>
void move_pixels(Image& image, const Source& source) {
  const std::vector<std::uint8_t> from = image.pixels;
  const std::size_t plane = plane_of(image);
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x) {
      const auto [source_x, source_y] = source(x, y);
      const auto column = static_cast<std::int64_t>(std::nearbyint(source_x));
      const auto row = static_cast<std::int64_t>(std::nearbyint(source_y));
      const bool inside = row >= 0 && row < image.height && column >= 0 && column < image.width;
      const auto to = static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) + static_cast<std::size_t>(x);
      for (std::size_t c = 0; c < static_cast<std::size_t>(image.channels); ++c)
        image.pixels[c * plane + to] =
            inside ? from[c * plane + static_cast<std::size_t>(row * image.width + column)] : 0;
    }
}

}  // namespace

void adjust_brightness(Image& image, float factor) {
  for (std::uint8_t& value : image.pixels) value = blended(value, 0, factor);
}

void adjust_contrast(Image& image, float factor) {
  const std::vector<std::uint8_t> grey = grey_of(image);
  double sum = 0;
  for (const std::uint8_t value : grey) sum += value;
  const auto mean = static_cast<float>(sum / static_cast<double>(grey.size()));
  for (std::uint8_t& value : image.pixels) value = blended(value, mean, factor);
}

void adjust_saturation(Image& image, float factor) {
  if (image.channels != 3) return;
  const std::vector<std::uint8_t> grey = grey_of(image);
  each_plane(image, [&](std::uint8_t* values, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) values[i] = blended(values[i], grey[i], factor);
  });
}

void adjust_sharpness(Image& image, float factor) {
  if (image.height <= 2 || image.width <= 2) return;
  const std::vector<std::uint8_t> blurred = smoothed(image);
  for (std::size_t i = 0; i < blurred.size(); ++i) image.pixels[i] = blended(image.pixels[i], blurred[i], factor);
}

void adjust_hue(Image& image, float turn) {
  if (image.channels != 3) return;
  const std::size_t plane = plane_of(image);
  std::uint8_t *r = image.pixels.data(), *g = r + plane, *b = g + plane;
  const auto byte = [](float value) { return static_cast<std::uint8_t>(value * (256 - 1e-3f)); };
  for (std::size_t i = 0; i < plane; ++i) {
    const auto [h, s, v] =
        hsv_of(static_cast<float>(r[i]) / 255, static_cast<float>(g[i]) / 255, static_cast<float>(b[i]) / 255);
    const float turned = h + turn;
    const auto [red, green, blue] = rgb_of(turned - std::floor(turned), s, v);
    r[i] = byte(red), g[i] = byte(green), b[i] = byte(blue);
  }
}

void posterize(Image& image, int bits) {
  const auto mask = static_cast<std::uint8_t>(-(1 << (8 - bits)));
  for (std::uint8_t& value : image.pixels) value &= mask;
}

void solarize(Image& image, float threshold) {
  for (std::uint8_t& value : image.pixels)
    if (static_cast<float>(value) >= threshold) value = static_cast<std::uint8_t>(255 - value);
}

void autocontrast(Image& image) {
  each_plane(image, [](std::uint8_t* values, std::size_t count) {
    const auto [least, most] = std::minmax_element(values, values + count);
    if (*least == *most) return;
    const float darkest = *least, scale = 255 / (static_cast<float>(*most) - darkest);
    for (std::size_t i = 0; i < count; ++i)
      values[i] =
          static_cast<std::uint8_t>(std::clamp((static_cast<float>(values[i]) - darkest) * scale, 0.0f, 255.0f));
  });
}

// A value becomes the number of pixels that are darker, in 255ths of those that are not of the brightest value.
void equalize(Image& image) {
  each_plane(image, [](std::uint8_t* values, std::size_t count) {
    std::array<std::size_t, 256> histogram{}, table{};
    for (std::size_t i = 0; i < count; ++i) ++histogram[values[i]];
    const std::uint8_t brightest = *std::max_element(values, values + count);
    const std::size_t step = (count - histogram[brightest]) / 255;
    if (step == 0) return;
    std::size_t darker = 0;
    for (std::size_t value = 0; value < table.size(); darker += histogram[value++])
      table[value] = value == 0 ? 0 : std::min<std::size_t>((darker + step / 2) / step, 255);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(table[values[i]]);
  });
}

void shear_x(Image& image, double slope) {
  move_pixels(image, [slope](int x, int y) { return std::pair(x + slope * (y + 0.5), double(y)); });
}

void shear_y(Image& image, double slope) {
  move_pixels(image, [slope](int x, int y) { return std::pair(double(x), y + slope * (x + 0.5)); });
}

void translate(Image& image, int right, int down) {
  move_pixels(image, [=](int x, int y) { return std::pair(double(x) - right, double(y) - down); });
}

void rotate(Image& image, double degrees) {
  const double angle = degrees * std::numbers::pi / 180, cosine = std::cos(angle), sine = std::sin(angle);
  const double middle_x = (image.width - 1) / 2.0, middle_y = (image.height - 1) / 2.0;
  move_pixels(image, [=](int x, int y) {
    const double right = x - middle_x, down = y - middle_y;
    return std::pair(cosine * right - sine * down + middle_x, sine * right + cosine * down + middle_y);
  });
}

}  // namespace twiddle
