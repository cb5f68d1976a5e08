#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "data/augmentation/augment.h"

namespace twiddle {

namespace {

// One output coordinate as a weighted sum of the input coordinates first, first + 1 ...
struct Tap {
  int first = 0, count = 0;
  std::size_t weights = 0;  // where they begin
};

// Weights are whole numbers that sum to 65,535 for each output: the same results on every machine.
struct Taps {
  std::vector<Tap> outputs;
  std::vector<std::uint16_t> weights;
};

// Triangles of one input pixel's width to either side, or of one output pixel's where that is wider (shrinking).
Taps triangle_taps(int from, int to) {
  const double scale = double(from) / to, reach = std::max(scale, 1.0);
  Taps taps;
  std::vector<double> sums;  // of the first weights
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - reach + 0.5));
    const int last = std::min(from, static_cast<int>(centre + reach + 0.5));
    sums.assign(1, 0.0);
    for (int x = first; x < last; ++x)
      sums.push_back(sums.back() + std::max(0.0, 1 - std::abs((x + 0.5 - centre) / reach)));
    const auto whole = [&](double sum) { return std::lround(65535 * sum / sums.back()); };
    taps.outputs.push_back({first, last - first, taps.weights.size()});
    for (std::size_t k = 1; k < sums.size(); ++k)
      taps.weights.push_back(static_cast<std::uint16_t>(whole(sums[k]) - whole(sums[k - 1])));
  }
  return taps;
}

// Bytes in rows with a separate row length.
struct Plane {
  const std::uint8_t* bytes;
  std::size_t row_length;

  const std::uint8_t* row(int y) const { return bytes + static_cast<std::size_t>(y) * row_length; }
};

// In 256ths; the product's upper half, which processors take of eight at a time.
std::uint16_t weighed(std::uint8_t value, std::uint16_t weight) {
  return static_cast<std::uint16_t>((static_cast<std::uint32_t>(value << 8) * weight) >> 16);
}

// Products of more rows are summed in 32 bits: in 16 bits, each is rounded down by up to 1/256.
constexpr int most_rows_in_16_bits = 64;

// out[x]: the exact weighted sum of the tap's rows at x, to the nearest.
void weigh_many_rows(const Plane& in, int width, const Tap& tap, const std::uint16_t* weights, std::uint8_t* out) {
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(width), 32767);
  for (int k = 0; k < tap.count; ++k) {
    const std::uint8_t* from = in.row(tap.first + k);
    const std::uint32_t weight = weights[k];
    for (int x = 0; x < width; ++x) sums[static_cast<std::size_t>(x)] += from[x] * weight;
  }
  for (int x = 0; x < width; ++x) out[x] = static_cast<std::uint8_t>(sums[static_cast<std::size_t>(x)] / 65535);
}

// out[x]: the weighted sum of the tap's rows at x, to the nearest. Every product was rounded down, by half on average.
void weigh_rows(const Plane& in, int width, const Tap& tap, const std::uint16_t* weights, std::uint16_t* sums,
                std::uint8_t* out) {
  if (tap.count <= 2) {
    const std::uint8_t *above = in.row(tap.first), *below = in.row(tap.first + tap.count - 1);
    const std::uint16_t upper = weights[0], lower = tap.count == 2 ? weights[1] : std::uint16_t(0);
    for (int x = 0; x < width; ++x)
      out[x] = static_cast<std::uint8_t>((weighed(above[x], upper) + weighed(below[x], lower) + 129) >> 8);
    return;
  }
  if (tap.count > most_rows_in_16_bits) return weigh_many_rows(in, width, tap, weights, out);
  std::fill(sums, sums + width, static_cast<std::uint16_t>(128 + tap.count / 2));
  for (int k = 0; k < tap.count; ++k) {
    const std::uint8_t* from = in.row(tap.first + k);
    const std::uint16_t weight = weights[k];
    for (int x = 0; x < width; ++x) sums[x] = static_cast<std::uint16_t>(sums[x] + weighed(from[x], weight));
  }
  for (int x = 0; x < width; ++x) out[x] = static_cast<std::uint8_t>(sums[x] >> 8);
}

constexpr int block_side = 8;  // rows and columns that are turned at a time

// The rows of an 8 x 8 block, a byte each column, become its columns: halves change places, then quarters, then bytes.
void turn_block(std::array<std::uint64_t, block_side>& rows) {
  const auto exchange = [&](std::size_t distance, std::uint64_t low) {
    const std::size_t bits = 8 * distance;
    for (std::size_t i = 0; i < block_side; ++i) {
      if (i & distance) continue;
      const std::uint64_t difference = ((rows[i] >> bits) ^ rows[i + distance]) & low;
      rows[i] ^= difference << bits;
      rows[i + distance] ^= difference;
    }
  };
  exchange(4, 0x00000000ffffffff);
  exchange(2, 0x0000ffff0000ffff);
  exchange(1, 0x00ff00ff00ff00ff);
}

// Makes one row of `width` bytes per tap, and writes them transposed: row y of the sums is column y of
// `out`, which has rows of taps.size() bytes. Transposed twice, both directions are summed along rows, many pixels at a
// time.
void resample_and_turn(const Plane& in, int width, const Taps& taps, std::uint8_t* out) {
  const int count = static_cast<int>(taps.outputs.size());
  const std::size_t padded = (static_cast<std::size_t>(width) + block_side - 1) / block_side * block_side;
  std::vector<std::uint16_t> sums(padded);
  std::vector<std::uint8_t> rows(block_side * padded);
  for (int first = 0; first < count; first += block_side) {
    const int high = std::min(block_side, count - first);
    for (int y = 0; y < high; ++y) {
      const Tap& tap = taps.outputs[static_cast<std::size_t>(first + y)];
      weigh_rows(in, width, tap, &taps.weights[tap.weights], sums.data(), &rows[static_cast<std::size_t>(y) * padded]);
    }
    for (int left = 0; left < width; left += block_side) {
      std::array<std::uint64_t, block_side> turned;
      for (std::size_t y = 0; y < block_side; ++y)
        std::memcpy(&turned[y], &rows[y * padded + static_cast<std::size_t>(left)], block_side);
      turn_block(turned);
      const int wide = std::min(block_side, width - left);
      std::uint8_t* to = out + static_cast<std::size_t>(left) * count + first;
      for (int x = 0; x < wide; ++x, to += count) {
        if (high == block_side)
          std::memcpy(to, &turned[static_cast<std::size_t>(x)], block_side);
        else
          std::memcpy(to, &turned[static_cast<std::size_t>(x)], static_cast<std::size_t>(high));
      }
    }
  }
}

}  // namespace

Image resized(const Image& image, int height, int width) {
  return resized(image, {0, 0, image.height, image.width}, height, width);
}

Image resized(const Image& image, const Window& window, int height, int width) {
  if (height == window.height && width == window.width) return cropped(image, window.top, window.left, height, width);
  const Taps rows = triangle_taps(window.height, height), columns = triangle_taps(window.width, width);
  const std::size_t in_width = static_cast<std::size_t>(image.width);
  const std::size_t in_plane = in_width * static_cast<std::size_t>(image.height);
  const std::size_t out_plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  const std::size_t corner = static_cast<std::size_t>(window.top) * in_width + static_cast<std::size_t>(window.left);
  Image out{image.channels, height, width, {}};
  out.pixels.resize(static_cast<std::size_t>(image.channels) * out_plane);
  std::vector<std::uint8_t> turned(static_cast<std::size_t>(height) * static_cast<std::size_t>(window.width));
  for (std::size_t c = 0; c < static_cast<std::size_t>(image.channels); ++c) {
    resample_and_turn({&image.pixels[c * in_plane + corner], in_width}, window.width, rows, turned.data());
    resample_and_turn({turned.data(), static_cast<std::size_t>(height)}, height, columns, &out.pixels[c * out_plane]);
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

// Eight bytes at a time.
void flip_horizontally(Image& image) {
  const auto width = static_cast<std::size_t>(image.width);
  std::vector<std::uint8_t> turned(width);
  for (auto row = image.pixels.begin(); row != image.pixels.end(); row += image.width) {
    std::size_t x = 0;
    for (std::uint64_t bytes; x + sizeof(bytes) <= width; x += sizeof(bytes)) {
      std::memcpy(&bytes, &row[static_cast<std::ptrdiff_t>(width - x - sizeof(bytes))], sizeof(bytes));
      bytes = __builtin_bswap64(bytes);
      std::memcpy(&turned[x], &bytes, sizeof(bytes));
    }
    std::reverse_copy(row, row + static_cast<std::ptrdiff_t>(width - x),
                      turned.begin() + static_cast<std::ptrdiff_t>(x));
    std::copy(turned.begin(), turned.end(), row);
  }
}

}  // namespace twiddle
