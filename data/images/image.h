#pragma once
#include <cstdint>
#include <vector>

namespace twiddle {

// A picture of more pixels is refused by what its header says, before it is decoded: a file of one megabyte can claim
// pixels that take gigabytes. The second is the most that a config can allow.
constexpr std::int64_t usual_max_pixels = std::int64_t(1) << 26, largest_max_pixels = std::int64_t(1) << 28;

// Bytes of one picture, planar: pixels[(c * height + y) * width + x].
struct Image {
  int channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels;
};

}  // namespace twiddle
