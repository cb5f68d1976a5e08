#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>

#include "data/files.h"
#include "data/formats/dataset.h"
#include "data/images/decoders.h"
#include "data/images/file_kind.h"
#include "data/images/jpeg_segments.h"
#include "data/images/orientation.h"
#include "framework/printable.h"
#include "framework/text.h"

namespace twiddle {

namespace {

// stb's allocator, which has no user data: the most bytes of one allocation. It zeroes, so that what a damaged file
// leaves unset is the same in every run.
thread_local std::size_t allocation_limit = 0;
thread_local bool memory_ran_out = false;  // below the limit

void* limited_allocate(std::size_t bytes) {
  if (bytes > allocation_limit) return nullptr;
  void* const block = std::calloc(bytes, 1);
  memory_ran_out = memory_ran_out || block == nullptr;
  return block;
}
void* limited_reallocate(void* old, std::size_t bytes) {
  if (bytes > allocation_limit) return nullptr;
  void* const block = std::realloc(old, bytes);
  memory_ran_out = memory_ran_out || block == nullptr;
  return block;
}

}  // namespace

}  // namespace twiddle

#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_NO_STDIO
#define STBI_NO_LINEAR
#define STBI_NO_HDR
#define STBI_MAX_DIMENSIONS (1 << 15)
#define STBI_MALLOC twiddle::limited_allocate
#define STBI_REALLOC twiddle::limited_reallocate
#define STBI_FREE std::free
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>

#define STBI_WRITE_NO_STDIO
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image_write.h>

namespace twiddle {

namespace {

template <class... Parts>
[[noreturn]] void fail(const std::string& path, const Parts&... parts) {
  throw Error(ErrorKind::data, join("'", shown(path), "' is not a readable image: ", parts...));
}

// Returns the format by the first bytes; null if they are neither PNG's nor JPEG's.
const char* format_of(std::span<const std::uint8_t> bytes) {
  if (begins_with(bytes, "\x89PNG\r\n\x1a\n")) return "PNG";
  return begins_with(bytes, "\xff\xd8") ? "JPEG" : nullptr;
}

// stb tries its readers in turn and often reports only that the last one did not know the format. For an unknown chunk
// of a PNG it reports the chunk's name from the file, unescaped.
[[noreturn]] void fail_by_stb(const std::string& path, const char* format, std::size_t bytes) {
  const std::string reason = stbi_failure_reason() ? stbi_failure_reason() : "";
  const bool said = !reason.empty() && reason != "unknown image type" && reason != "bad png sig";
  fail(path, format, " of ", bytes, " bytes, truncated or damaged", said ? " (" + shown(reason) + ")" : "");
}

// The luma of ITU-R 601-2 in PIL's arithmetic, which rounds to the nearest byte.
std::uint8_t gray_of(const stbi_uc* rgb) {
  return static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
}

// Converts pixels with `stored` channels: gray or RGB, perhaps with alpha, which is dropped. RGB needs RGB input.
Image planar(const stbi_uc* pixels, int stored, int channels, int height, int width) {
  const std::size_t plane = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  const auto step = static_cast<std::size_t>(stored);
  Image image{channels, height, width, {}};
  image.pixels.resize(plane * static_cast<std::size_t>(channels));
  if (channels == 1 && stored >= 3) {
    for (std::size_t i = 0; i < plane; ++i) image.pixels[i] = gray_of(pixels + i * step);
    return image;
  }
  for (int c = 0; c < channels; ++c) {
    std::uint8_t* out = image.pixels.data() + plane * static_cast<std::size_t>(c);
    for (std::size_t i = 0; i < plane; ++i) out[i] = pixels[i * step + static_cast<std::size_t>(c)];
  }
  return image;
}

}  // namespace

Image read_image(const std::string& path, int channels, std::int64_t max_pixels, bool orient) {
  require(channels == 1 || channels == 3, "read_image: images have 1 or 3 channels, not ", channels);
  const std::vector<std::uint8_t> file = read_bytes(path);
  std::optional<Image> decoded = read_by_turbojpeg(file, channels, max_pixels);
  Image image = decoded ? *std::move(decoded) : read_by_stb(file, channels, path, max_pixels);
  return oriented(std::move(image), orient ? orientation_of(file) : upright);
}

Image read_by_stb(std::span<const std::uint8_t> file, int channels, const std::string& path, std::int64_t max_pixels) {
  if (file.empty()) fail(path, "the file is empty");
  if (file.size() > (std::size_t(1) << 30)) fail(path, "over 1 GiB");
  const char* const format = format_of(file);
  if (format == nullptr) {
    const std::string kind = kind_of_file(file, FileUse::image);
    if (kind.empty()) fail(path, "neither JPEG nor PNG (", file.size(), " bytes)");
    throw Error(ErrorKind::data, join("'", printable(path), "' is not a JPEG or PNG file but ", kind));
  }

  if (!huffman_tables_fit(file)) fail(path, "damaged JPEG: a Huffman table of over 256 codes");
  const bool is_jpeg = format == std::string_view("JPEG");
  const std::vector<std::uint8_t> marked = is_jpeg ? with_cmyk_marker(file) : std::vector<std::uint8_t>();
  const std::uint8_t* const bytes = marked.empty() ? file.data() : marked.data();
  const int length = static_cast<int>(marked.empty() ? file.size() : marked.size());
  // stb's own gray is rounded down; of a JPEG it takes the first plane, which may be cyan or red.
  const int wanted = channels == 1 && !(is_jpeg && stores_gray(file)) ? 0 : channels;
  int width = 0, height = 0, stored = 0;
  allocation_limit = 1 << 20;
  memory_ran_out = false;
  if (!stbi_info_from_memory(bytes, length, &width, &height, &stored)) {
    // Only decoding shows the reason.
    stbi_image_free(stbi_load_from_memory(bytes, length, &width, &height, &stored, wanted));
    fail_by_stb(path, format, file.size());
  }
  const std::int64_t pixels = std::int64_t(width) * height;
  if (pixels > max_pixels)
    fail(path, width, "x", height, " pixels are more than the ", format_count(max_pixels),
         " that `max_pixels` under `data:` allows");
  if (pixels / most_pixels_a_byte > length)
    fail(path, "it claims ", width, "x", height, " pixels in ", file.size(), " bytes; truncated or damaged");
  // Four channels of 16 bits, sides padded to whole JPEG blocks; twice that for a buffer that grows by doubling.
  allocation_limit =
      std::max<std::size_t>(16 * (static_cast<std::size_t>(width) + 64) * (static_cast<std::size_t>(height) + 64),
                            2 * file.size() + (1 << 16));
  stbi__g_failure_reason = nullptr;  // what its other readers said of the header
  const std::unique_ptr<stbi_uc, void (*)(void*)> decoded(
      stbi_load_from_memory(bytes, length, &width, &height, &stored, wanted), &stbi_image_free);
  if (!decoded && memory_ran_out) throw std::bad_alloc();  // not the image's fault
  if (!decoded && !stbi_failure_reason())
    fail(path, format, " of ", file.size(), " bytes and ", width, "x", height,
         " pixels: damaged, or more than can be held while it is decoded");
  if (!decoded) fail_by_stb(path, format, file.size());
  if (is_jpeg && !has_jpeg_end(file))
    fail(path, format, " of ", file.size(), " bytes, truncated or damaged (no end marker)");
  return planar(decoded.get(), wanted == 0 ? stored : wanted, channels, height, width);
}

std::vector<std::uint8_t> encode_png(const Image& image) {
  const std::size_t plane = static_cast<std::size_t>(image.height) * static_cast<std::size_t>(image.width);
  const std::size_t channels = static_cast<std::size_t>(image.channels);
  require(plane > 0 && (channels == 1 || channels == 3) && image.pixels.size() == plane * channels,
          "encode_png: an image has 1 or 3 channels and as many bytes as pixels, not ", image.channels, "x",
          image.height, "x", image.width, " with ", image.pixels.size());
  std::vector<std::uint8_t> interleaved(image.pixels.size()), png;
  for (std::size_t i = 0; i < plane; ++i)
    for (std::size_t c = 0; c < channels; ++c) interleaved[i * channels + c] = image.pixels[c * plane + i];
  const auto append = [](void* to, void* data, int size) {
    const auto* first = static_cast<const std::uint8_t*>(data);
    auto& all = *static_cast<std::vector<std::uint8_t>*>(to);
    all.insert(all.end(), first, first + size);
  };
  const int done = stbi_write_png_to_func(append, &png, image.width, image.height, image.channels, interleaved.data(),
                                          image.width * image.channels);
  require(done != 0, "encode_png: stb could not write the image");
  return png;
}

}  // namespace twiddle
