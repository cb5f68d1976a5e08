#include <turbojpeg.h>

#include <bit>
#include <memory>
#include <type_traits>

#include "data/images/decoders.h"

namespace twiddle {

namespace {

struct Destroy {
  void operator()(tjhandle handle) const { tjDestroy(handle); }
};
using Decoder = std::unique_ptr<std::remove_pointer_t<tjhandle>, Destroy>;

// Damage of any kind is a failure, and so are hundreds of passes over the same pixels.
constexpr int flags = TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS;

// Words with red in the lowest byte, then green and blue, part into planes many at a time.
constexpr int words_of_colour = std::endian::native == std::endian::little ? TJPF_RGBX : TJPF_XBGR;
void part(const std::uint32_t* pixels, std::size_t count, std::uint8_t* planes) {
  std::uint8_t *red = planes, *green = planes + count, *blue = planes + 2 * count;
  for (std::size_t i = 0; i < count; ++i) {
    red[i] = static_cast<std::uint8_t>(pixels[i]);
    green[i] = static_cast<std::uint8_t>(pixels[i] >> 8);
    blue[i] = static_cast<std::uint8_t>(pixels[i] >> 16);
  }
}

}  // namespace

std::optional<Image> read_by_turbojpeg(std::span<const std::uint8_t> file, int channels, std::int64_t max_pixels) {
  if (file.size() < 2 || file[0] != 0xff || file[1] != 0xd8) return std::nullopt;
  const Decoder decoder(tjInitDecompress());
  const auto bytes = static_cast<unsigned long>(file.size());
  Image image{channels, 0, 0, {}};
  int subsampling = 0, colours = 0;
  if (!decoder ||
      tjDecompressHeader3(decoder.get(), file.data(), bytes, &image.width, &image.height, &subsampling, &colours) != 0)
    return std::nullopt;
  const std::int64_t count = std::int64_t(image.width) * image.height;
  if (count > max_pixels || count / most_pixels_a_byte > static_cast<std::int64_t>(file.size())) return std::nullopt;

  const auto decode = [&](std::uint8_t* to, int format) {
    return tjDecompress2(decoder.get(), file.data(), bytes, to, image.width, 0, image.height, format, flags) == 0;
  };
  const auto pixels = static_cast<std::size_t>(count);
  if (channels == 1) {
    image.pixels.resize(pixels);
    return decode(image.pixels.data(), TJPF_GRAY) ? std::optional(std::move(image)) : std::nullopt;
  }
  const std::unique_ptr<std::uint32_t[]> words(new std::uint32_t[pixels]);
  if (!decode(reinterpret_cast<std::uint8_t*>(words.get()), words_of_colour)) return std::nullopt;
  image.pixels.resize(3 * pixels);
  part(words.get(), pixels, image.pixels.data());
  return image;
}

std::string jpeg_reader() {
  return "libjpeg-turbo";
}

}  // namespace twiddle
