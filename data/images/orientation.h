#pragma once
#include <cstdint>
#include <span>

#include "data/formats/dataset.h"

namespace twiddle {

constexpr int upright = 1;

// The EXIF orientation of a JPEG or PNG file, 1 to 8: `upright` if it has none or no valid one.
int orientation_of(std::span<const std::uint8_t> file);

// The image as a viewer shows it, of one that is stored with this orientation.
Image oriented(Image image, int orientation);

}  // namespace twiddle
