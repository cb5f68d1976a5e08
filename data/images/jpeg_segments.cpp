#include "data/images/jpeg_segments.h"

#include <algorithm>

#include "data/images/file_kind.h"

namespace twiddle {

namespace {

constexpr int start_of_image = 0xd8, jfif = 0xe0, adobe = 0xee;

// Restart markers and stuffed zeros belong to the pixels.
bool is_within_pixels(int code) {
  return code == 0 || (code >= 0xd0 && code <= 0xd7);
}

// Baseline, extended or progressive; stb and libjpeg-turbo refuse other frames.
bool is_frame(int marker) {
  return marker >= 0xc0 && marker <= 0xc2;
}

// What the segments before the first scan say of the colours.
struct JpegColors {
  int components = 0;
  bool has_rgb_names = false, has_jfif = false;
  int adobe_transform = -1;    // -1: no marker by Adobe
  std::size_t first_scan = 0;  // offset of its marker
};

JpegColors read_colors(std::span<const std::uint8_t> file) {
  JpegColors colors;
  JpegSegments segments(file);
  while (const std::optional<JpegSegment> segment = segments.next()) {
    const std::span<const std::uint8_t> data = segment->data;
    if (segment->marker == JpegSegments::start_of_scan) {
      colors.first_scan = segment->begin - 4;
      break;
    }
    if (segment->marker == jfif && begins_with(data, "JFIF")) colors.has_jfif = true;
    if (segment->marker == adobe && begins_with(data, "Adobe") && data.size() >= 12) colors.adobe_transform = data[11];
    if (!is_frame(segment->marker) || data.size() < 6) continue;
    colors.components = data[5];
    const std::size_t last_name = 12;
    colors.has_rgb_names = data.size() > last_name && data[6] == 'R' && data[9] == 'G' && data[last_name] == 'B';
  }
  return colors;
}

// A DHT segment: tables of 16 counts, then as many values as they sum to. As stb reads it: by what the tables say, past
// the segment's end if need be, and zeros after the end of the file.
bool tables_fit(std::span<const std::uint8_t> file, const JpegSegment& segment) {
  const std::size_t end = segment.begin + segment.data.size();
  for (std::size_t table = segment.begin; table < end;) {
    std::size_t codes = 0;
    for (std::size_t i = table + 1; i < std::min(table + 17, file.size()); ++i) codes += file[i];
    if (codes > 256) return false;
    table += 17 + codes;
  }
  return true;
}

}  // namespace

JpegSegments::JpegSegments(std::span<const std::uint8_t> file) : file_(file) {
  int marker = 0;
  if (file.empty() || file[0] != 0xff || !find_marker(marker) || marker != start_of_image) at_ = file.size();
}

// The next one: 0xff, perhaps several times, then its code.
bool JpegSegments::find_marker(int& marker) {
  while (at_ + 1 < file_.size()) {
    if (file_[at_++] != 0xff) continue;
    while (at_ < file_.size() && file_[at_] == 0xff) ++at_;
    if (at_ == file_.size()) return false;
    marker = file_[at_++];
    if (!is_within_pixels(marker)) return true;
  }
  return false;
}

std::optional<JpegSegment> JpegSegments::next() {
  JpegSegment segment;
  if (!find_marker(segment.marker)) return std::nullopt;
  if (segment.marker == end_of_image) {
    at_ = file_.size();
    return segment;
  }
  const bool has_length = segment.marker != start_of_image && file_.size() - at_ >= 2;
  const std::size_t length = has_length ? std::size_t(file_[at_]) << 8 | file_[at_ + 1] : 0;  // its own bytes included
  if (length < 2) {
    at_ = file_.size();
    return std::nullopt;
  }
  segment.begin = at_ + 2;
  at_ = std::min(at_ + length, file_.size());
  segment.data = file_.subspan(segment.begin, at_ - segment.begin);
  return segment;
}

bool huffman_tables_fit(std::span<const std::uint8_t> file) {
  JpegSegments segments(file);
  while (const std::optional<JpegSegment> segment = segments.next())
    if (segment->marker == JpegSegments::define_huffman && !tables_fit(file, *segment)) return false;
  return true;
}

bool has_jpeg_end(std::span<const std::uint8_t> file) {
  bool has_scan = false;
  JpegSegments segments(file);
  while (const std::optional<JpegSegment> segment = segments.next()) {
    if (segment->marker == JpegSegments::end_of_image) return has_scan;
    has_scan = has_scan || segment->marker == JpegSegments::start_of_scan;
  }
  return false;
}

bool stores_gray(std::span<const std::uint8_t> file) {
  const JpegColors colors = read_colors(file);
  const bool rgb = colors.has_rgb_names || (colors.adobe_transform == 0 && !colors.has_jfif);
  return colors.components == 1 || (colors.components == 3 && !rgb);
}

std::vector<std::uint8_t> with_cmyk_marker(std::span<const std::uint8_t> file) {
  constexpr std::uint8_t cmyk = 0, ycck = 2;
  const JpegColors colors = read_colors(file);
  const int transform = colors.adobe_transform;
  if (colors.components != 4 || colors.first_scan == 0 || transform == cmyk || transform == ycck) return {};
  std::vector<std::uint8_t> marker{0xff, adobe, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0};
  marker.push_back(transform == -1 ? cmyk : ycck);  // an unknown transform is YCCK for libjpeg
  std::vector<std::uint8_t> marked(file.begin(), file.end());
  marked.insert(marked.begin() + static_cast<std::ptrdiff_t>(colors.first_scan), marker.begin(), marker.end());
  return marked;
}

}  // namespace twiddle
