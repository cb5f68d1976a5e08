#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/augment.h"

namespace twiddle {

namespace {

// One output coordinate as a weighted sum of input coordinates first, first + 1 ...
struct Tap {
  int first = 0;
  std::vector<float> weights;
};

// Triangles of one input pixel's width to either side, or of one output pixel's where that is wider (shrinking).
std::vector<Tap> triangle_taps(int from, int to) {
  const double scale = double(from) / to, reach = std::max(scale, 1.0);
  std::vector<Tap> taps(static_cast<std::size_t>(to));
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - reach + 0.5));
    const int last = std::min(from, static_cast<int>(centre + reach + 0.5));
    Tap& tap = taps[static_cast<std::size_t>(i)];
    tap.first = first;
    double sum = 0;
    for (int x = first; x < last; ++x) {
      const double weight = std::max(0.0, 1 - std::abs((x + 0.5 - centre) / reach));
      tap.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : tap.weights) weight = static_cast<float>(weight / sum);
  }
  return taps;
}

std::uint8_t to_byte(float value) {
  return static_cast<std::uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
}

}  // namespace

Image resized(const Image& image, int height, int width) {
  if (height == image.height && width == image.width) return image;
  const std::vector<Tap> rows = triangle_taps(image.height, height), columns = triangle_taps(image.width, width);
  const std::size_t in_width = static_cast<std::size_t>(image.width);
  Image out{image.channels, height, width, {}};
  out.pixels.resize(static_cast<std::size_t>(image.channels) * height * width);
  std::uint8_t* to = out.pixels.data();
  std::vector<float> mixed(in_width);  // the input rows of one output row, summed
  for (int c = 0; c < image.channels; ++c) {
    const std::uint8_t* plane = image.pixels.data() + static_cast<std::size_t>(c) * image.height * in_width;
    for (const Tap& row : rows) {
      std::fill(mixed.begin(), mixed.end(), 0.0f);
      const std::uint8_t* from = plane + static_cast<std::size_t>(row.first) * in_width;
      for (const float weight : row.weights) {
        for (std::size_t x = 0; x < in_width; ++x) mixed[x] += weight * from[x];
        from += in_width;
      }
      for (const Tap& column : columns) {
        const float* first = mixed.data() + column.first;
        float sum = 0;
        for (std::size_t i = 0; i < column.weights.size(); ++i) sum += column.weights[i] * first[i];
        *to++ = to_byte(sum);
      }
    }
  }
  return out;
}

Image cropped(const Image& image, int top, int left, int height, int width) {
  Image out{image.channels, height, width, {}};
  out.pixels.resize(static_cast<std::size_t>(image.channels) * height * width);
  const int first_x = std::max(0, -left), last_x = std::min(width, image.width - left);
  const int first_y = std::max(0, -top), last_y = std::min(height, image.height - top);
  if (first_x >= last_x) return out;
  for (int c = 0; c < image.channels; ++c)
    for (int y = first_y; y < last_y; ++y) {
      const std::size_t to = (static_cast<std::size_t>(c) * height + y) * width + first_x;
      const std::size_t from =
          (static_cast<std::size_t>(c) * image.height + (top + y)) * image.width + (left + first_x);
      std::memcpy(&out.pixels[to], &image.pixels[from], static_cast<std::size_t>(last_x - first_x));
    }
  return out;
}

void flip_horizontally(Image& image) {
  for (auto row = image.pixels.begin(); row != image.pixels.end(); row += image.width)
    std::reverse(row, row + image.width);
}

}  // namespace twiddle
