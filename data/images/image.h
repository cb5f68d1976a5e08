#pragma once
#include <cstdint>
#include <vector>

namespace twiddle {

// Bytes of one picture, planar: pixels[(c * height + y) * width + x].
struct Image {
  int channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;
};

}  // namespace twiddle
