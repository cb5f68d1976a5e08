#pragma once
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "tests/data/fixtures.h"

namespace twiddle {

// An Adobe segment: transform 0 stores RGB or CMYK, 1 YCbCr, 2 YCCK.
inline Bytes adobe_segment(std::uint8_t transform) {
  return {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, transform};
}

// A JPEG of 8x8 pixels with one value per component, small enough to write its coefficients by hand. Every quantization
// factor is 8, the first coefficient of a block is its mean, and an end of block, code 0, replaces the others.
inline Bytes flat_jpeg(const Bytes& values, const Bytes& segments = {}, const Bytes& names = {1, 2, 3, 4}) {
  const auto count = static_cast<std::uint8_t>(values.size());
  Bytes file{0xff, 0xd8};
  const auto append = [&file](const Bytes& bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
  append(segments);
  append({0xff, 0xdb, 0, 67, 0});
  append(Bytes(64, 8));
  append({0xff, 0xc0, 0, static_cast<std::uint8_t>(8 + 3 * count), 8, 0, 8, 0, 8, count});
  for (std::size_t i = 0; i < count; ++i) append({names[i], 0x11, 0});
  append({0xff, 0xc4, 0, 31, 0, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});  // 12 codes of 4 bits: the lengths
  append({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  append({0xff, 0xc4, 0, 20, 0x10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  append({0xff, 0xda, 0, static_cast<std::uint8_t>(6 + 2 * count), count});
  for (std::size_t i = 0; i < count; ++i) append({names[i], 0});
  append({0, 63, 0});
  std::vector<bool> bits;
  const auto write = [&bits](int number, int length) {
    for (int bit = length - 1; bit >= 0; --bit) bits.push_back((number >> bit & 1) != 0);
  };
  for (const std::uint8_t value : values) {
    const int mean = value - 128, length = std::bit_width(static_cast<unsigned>(std::abs(mean)));
    write(length, 4);
    write(mean >= 0 ? mean : mean + (1 << length) - 1, length);
    write(0, 1);
  }
  while (bits.size() % 8 != 0) bits.push_back(true);
  for (std::size_t i = 0; i < bits.size(); i += 8) {
    int byte = 0;
    for (std::size_t bit = i; bit < i + 8; ++bit) byte = 2 * byte + bits[bit];
    file.push_back(static_cast<std::uint8_t>(byte));
    if (byte == 0xff) file.push_back(0);
  }
  append({0xff, 0xd9});
  return file;
}

}  // namespace twiddle
