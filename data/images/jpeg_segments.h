#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace twiddle {

// A marker of a JPEG file and its data: as many bytes as its length says or the file still has.
struct JpegSegment {
  int marker = 0;
  std::size_t begin = 0;  // of the data, as an offset in the file
  std::span<const std::uint8_t> data;
};

// Steps through the markers of a JPEG file and skips the pixels between them. Ends after the end-of-image marker, at
// the end of the file, or if the file is damaged.
class JpegSegments {
 public:
  static constexpr int end_of_image = 0xd9, start_of_scan = 0xda, define_huffman = 0xc4, exif = 0xe1;

  explicit JpegSegments(std::span<const std::uint8_t> file);
  std::optional<JpegSegment> next();

 private:
  bool find_marker(int& marker);

  std::span<const std::uint8_t> file_;
  std::size_t at_ = 0;
};

// False if a JPEG has a Huffman table of more than 256 codes: stb versions before 2023 write past their tables
// then. True for anything that is not a JPEG, or is damaged in another way.
bool huffman_tables_fit(std::span<const std::uint8_t> file);

// Whether the end of the image follows its last scan. Anything may follow that end, such as the film of a motion photo.
bool has_jpeg_end(std::span<const std::uint8_t> file);

// Whether a JPEG stores the image in gray, alone or as the first plane of YCbCr.
bool stores_gray(std::span<const std::uint8_t> file);

// Without Adobe's marker, stb reads four components as YCbCr; libjpeg and PIL read CMYK. Returns a copy of such a file
// with a marker; empty if the file needs none.
std::vector<std::uint8_t> with_cmyk_marker(std::span<const std::uint8_t> file);

}  // namespace twiddle
