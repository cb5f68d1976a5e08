#include <algorithm>
#include <array>

#include "data/images/decoders.h"

#include "tests/data/fixtures.h"
#include "tests/data/small_jpeg.h"

namespace twiddle {

namespace {

bool turbojpeg_is_built_in() {
  return jpeg_reader() == "libjpeg-turbo";
}

}  // namespace

TEST(Turbojpeg, LeavesTruncatedJpegToStb) {
  const Bytes whole = small_jpeg();
  EXPECT_EQ(read_by_turbojpeg(whole, 3).has_value(), turbojpeg_is_built_in());
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(read_by_turbojpeg(std::span(whole).first(length), 3)) << length << " of " << whole.size();
  EXPECT_FALSE(read_by_turbojpeg(png_of(3, 4, 4, 1), 3));
  EXPECT_FALSE(read_by_turbojpeg(Bytes(40, 'a'), 3));
}

TEST(Turbojpeg, LeavesHugeDimensionsToStb) {
  Bytes jpeg = small_jpeg();
  const std::array<std::uint8_t, 4> frame{0xff, 0xc0, 0, 17};
  const auto size = std::search(jpeg.begin(), jpeg.end(), frame.begin(), frame.end()) + 5;
  ASSERT_LT(size, jpeg.end());
  size[0] = size[2] = 0x60;  // 24,586 x 24,588
  EXPECT_FALSE(read_by_turbojpeg(jpeg, 3));
  const std::string file = write_file(fresh_folder() / "x.jpg", jpeg);
  EXPECT_NE(
      message_of(ErrorKind::data, [&] { read_image(file, 3); }).find("more than the 67,108,864 that `max_pixels`"),
      std::string::npos);
}

// The standard specifies neither the rounding of the inverse transform nor the upsampling of chroma stored at half
// size.
TEST(Turbojpeg, AgreesWithStbWithinFour) {
  if (!turbojpeg_is_built_in()) GTEST_SKIP() << "built without libjpeg-turbo";
  for (const int channels : {1, 3}) {
    const std::optional<Image> image = read_by_turbojpeg(small_jpeg(), channels);
    ASSERT_TRUE(image);
    const Image other = read_by_stb(small_jpeg(), channels, "small.jpg");
    ASSERT_EQ(image->height * 100 + image->width, 1012);
    ASSERT_EQ(image->pixels.size(), other.pixels.size());
    for (std::size_t i = 0; i < other.pixels.size(); ++i) EXPECT_NEAR(image->pixels[i], other.pixels[i], 4) << i;
  }
}

}  // namespace twiddle
