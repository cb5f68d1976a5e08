#include "data/images/orientation.h"

#include <string_view>

#include "data/images/file_kind.h"
#include "data/images/jpeg_segments.h"

namespace twiddle {

namespace {

using Bytes = std::span<const std::uint8_t>;

// Numbers of a TIFF header; beyond its end they are 0.
struct Tiff {
  Bytes bytes;
  bool little = false;

  std::uint32_t number(std::uint64_t at, std::size_t count) const {
    if (at + count > bytes.size()) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[at + (little ? count - 1 - i : i)];
    return value;
  }
};

// EXIF is a TIFF header; its first directory has entries of 12 bytes: tag, type, count, value.
int read_exif(Bytes exif) {
  constexpr std::string_view prefix("Exif\0\0", 6), little("II*\0", 4), big("MM\0*", 4);
  constexpr std::uint32_t orientation_tag = 0x0112, type_short = 3, type_long = 4;
  if (begins_with(exif, prefix)) exif = exif.subspan(prefix.size());
  if (!begins_with(exif, little) && !begins_with(exif, big)) return upright;
  const Tiff tiff{exif, begins_with(exif, little)};
  const std::uint64_t directory = tiff.number(4, 4);
  const std::uint32_t entries = tiff.number(directory, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + 12 * std::uint64_t(i);
    if (tiff.number(entry, 2) != orientation_tag) continue;
    const std::uint32_t type = tiff.number(entry + 2, 2);
    const std::uint32_t value = type == type_short  ? tiff.number(entry + 8, 2)
                                : type == type_long ? tiff.number(entry + 8, 4)
                                                    : 0;
    return value >= 1 && value <= 8 ? static_cast<int>(value) : upright;
  }
  return upright;
}

int orientation_of_jpeg(Bytes file) {
  JpegSegments segments(file);
  while (const std::optional<JpegSegment> segment = segments.next()) {
    if (segment->marker == JpegSegments::start_of_scan) break;
    if (segment->marker == JpegSegments::exif && begins_with(segment->data, "Exif")) return read_exif(segment->data);
  }
  return upright;
}

// Chunks: a length of four bytes, a name of four, the data, a checksum of four.
int orientation_of_png(Bytes file) {
  constexpr std::size_t signature = 8, around_data = 12;
  const Tiff chunks{file};
  for (std::uint64_t at = signature; at + around_data <= file.size();) {
    const std::uint64_t length = chunks.number(at, 4), left = file.size() - at - around_data;
    if (length > left) break;
    if (begins_with(file.subspan(at + 4), "eXIf")) return read_exif(file.subspan(at + 8, length));
    at += around_data + length;
  }
  return upright;
}

}  // namespace

int orientation_of(std::span<const std::uint8_t> file) {
  return begins_with(file, "\x89PNG") ? orientation_of_png(file) : orientation_of_jpeg(file);
}

Image oriented(Image image, int orientation) {
  if (orientation == upright) return image;
  const bool transposed = orientation >= 5;
  const bool rows_from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool columns_from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  Image out{image.channels, transposed ? image.width : image.height, transposed ? image.height : image.width, {}};
  out.pixels.resize(image.pixels.size());

  // A step in the stored image for one down and one to the right in the upright one.
  const std::ptrdiff_t row = rows_from_below ? -image.width : image.width, column = columns_from_right ? -1 : 1;
  const std::ptrdiff_t down = transposed ? column : row, right = transposed ? row : column;
  const std::ptrdiff_t corner = (rows_from_below ? std::ptrdiff_t(image.height - 1) * image.width : 0) +
                                (columns_from_right ? image.width - 1 : 0);
  const std::ptrdiff_t plane = std::ptrdiff_t(image.height) * image.width;
  std::uint8_t* to = out.pixels.data();
  for (std::ptrdiff_t c = 0; c < image.channels; ++c)
    for (std::ptrdiff_t y = 0; y < out.height; ++y) {
      const std::uint8_t* from = image.pixels.data() + c * plane + corner + y * down;
      for (std::ptrdiff_t x = 0; x < out.width; ++x) *to++ = from[x * right];
    }
  return out;
}

}  // namespace twiddle
