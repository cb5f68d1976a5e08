#pragma once
#include <array>
#include <cstdint>

#include "tests/data/fixtures.h"

namespace twiddle {

// A gray PNG of these values, of any depth, with or without Adam7 interlacing. Pixels are in one stored deflate block;
// checksums are zeros, which the reader ignores.
inline Bytes gray_png(int width, int depth, const std::vector<int>& values, bool interlaced = false) {
  struct Pass {
    int x, y, step_x, step_y;
  };
  const std::vector<Pass> all{{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  const std::vector<Pass> passes = interlaced ? all : std::vector<Pass>{{0, 0, 1, 1}};
  const int height = static_cast<int>(values.size()) / width;
  Bytes rows;
  for (const Pass& pass : passes)
    for (int y = pass.y; y < height && pass.x < width; y += pass.step_y) {
      rows.push_back(0);  // no filter
      int bits = 0;
      for (int x = pass.x; x < width; x += pass.step_x)
        for (int bit = depth - 1; bit >= 0; --bit, ++bits) {
          if (bits % 8 == 0) rows.push_back(0);
          const int value = values[static_cast<std::size_t>(y * width + x)] >> bit & 1;
          rows.back() = static_cast<std::uint8_t>(rows.back() | value << (7 - bits % 8));
        }
    }
  Bytes file{137, 'P', 'N', 'G', 13, 10, 26, 10};
  const auto append = [&file](const Bytes& bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); };
  const auto big = [](std::size_t number) {
    return Bytes{static_cast<std::uint8_t>(number >> 24), static_cast<std::uint8_t>(number >> 16),
                 static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)};
  };
  const Bytes checksum(4, 0);
  append(big(13)), append({'I', 'H', 'D', 'R'});
  append(big(static_cast<std::size_t>(width))), append(big(static_cast<std::size_t>(height)));
  append({static_cast<std::uint8_t>(depth), 0, 0, 0, interlaced}), append(checksum);
  append(big(rows.size() + 11)), append({'I', 'D', 'A', 'T', 0x78, 0x01, 1});
  const std::size_t size = rows.size();
  append({static_cast<std::uint8_t>(size), static_cast<std::uint8_t>(size >> 8), static_cast<std::uint8_t>(~size),
          static_cast<std::uint8_t>(~size >> 8)});
  append(rows), append(checksum), append(checksum);
  append(big(0)), append({'I', 'E', 'N', 'D'}), append(checksum);
  return file;
}

}  // namespace twiddle
