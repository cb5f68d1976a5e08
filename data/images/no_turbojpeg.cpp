#include "data/images/decoders.h"

namespace twiddle {

std::optional<Image> read_by_turbojpeg(std::span<const std::uint8_t> /*file*/, int /*channels*/,
                                       std::int64_t /*max_pixels*/) {
  return std::nullopt;
}

std::string jpeg_reader() {
  return "stb_image";
}

}  // namespace twiddle
