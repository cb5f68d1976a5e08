#include "data/jpeg_tables.h"

#include <cstddef>

namespace twiddle {

namespace {

constexpr int start_of_image = 0xd8, end_of_image = 0xd9, define_huffman = 0xc4, none = -1;

// Reads bytes in order; zeros after the end, as stb does.
struct Reader {
  std::span<const std::uint8_t> file;
  std::size_t at = 0;

  bool at_end() const { return at >= file.size(); }
  int byte() { return at_end() ? 0 : file[at++]; }
  int word() {
    const int high = byte();
    return high << 8 | byte();
  }

  // The next marker: 0xff, perhaps again, then a code. Stuffed zeros and restart marks belong to the image's data.
  int marker() {
    while (!at_end()) {
      if (byte() != 0xff) continue;
      int code = 0xff;
      while (code == 0xff && !at_end()) code = byte();
      if (code != 0 && code != 0xff && (code < 0xd0 || code > 0xd7)) return code;
    }
    return none;
  }
};

// A DHT segment: tables of 16 counts, then as many values as they sum to.
bool segment_fits(Reader& reader) {
  for (int left = reader.word() - 2; left > 0;) {
    reader.byte();  // which table
    int codes = 0;
    for (int length = 1; length <= 16; ++length) codes += reader.byte();
    if (codes > 256) return false;
    reader.at += static_cast<std::size_t>(codes);
    left -= 17 + codes;
  }
  return true;
}

}  // namespace

bool huffman_tables_fit(std::span<const std::uint8_t> file) {
  Reader reader{file};
  if (file.empty() || file[0] != 0xff || reader.marker() != start_of_image) return true;
  for (int code = reader.marker(); code != none && code != end_of_image; code = reader.marker()) {
    if (code == define_huffman) {
      if (!segment_fits(reader)) return false;
    } else {
      const int length = reader.word();
      if (length < 2) return true;  // stb stops here too
      reader.at += static_cast<std::size_t>(length - 2);
    }
  }
  return true;
}

}  // namespace twiddle
