#include "data/augmentation/augment.h"
#include "data/formats/dataset.h"
#include "framework/printable.h"
#include "tests/fuzz/input_file.h"

// Any bytes as an image: it is decoded or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace twiddle;
  constexpr std::int64_t max_pixels = 1 << 16;  // so that most of the time goes into headers
  static InputFile file;
  const std::string& path = file.holding({data, size});
  for (const int channels : {1, 3}) try {
      const Image image = read_image(path, channels, max_pixels);
      const auto pixels = static_cast<std::size_t>(image.channels) * image.height * image.width;
      require(image.channels == channels && image.pixels.size() == pixels, "an image of another size than it says");
      resized(image, 5, 7);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data || error.what() != printable_lines(error.what())) throw;
    }
  return 0;
}
