#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/formats/dataset.h"

namespace twiddle {

// No JPEG or PNG packs more pixels into a byte: deflate reaches 1,032 to 1 on pixels of one bit.
constexpr std::int64_t most_pixels_a_byte = 1032 * 8;

// Decodes a JPEG by libjpeg-turbo if it is built in and the file is complete, of a common kind and within the limits.
// Returns nothing for any other file: stb_image then decodes it or reports the error.
std::optional<Image> read_by_turbojpeg(std::span<const std::uint8_t> file, int channels,
                                       std::int64_t max_pixels = usual_max_pixels);

// Decodes a JPEG or PNG by stb_image; throws an Error of kind data with the path, size and reason.
Image read_by_stb(std::span<const std::uint8_t> file, int channels, const std::string& path,
                  std::int64_t max_pixels = usual_max_pixels);

// Which library decodes JPEGs: "libjpeg-turbo" or "stb_image".
std::string jpeg_reader();

}  // namespace twiddle
