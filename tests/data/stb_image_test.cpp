#include <sys/stat.h>

#include "tests/data/fixtures.h"
#include "tests/data/small_jpeg.h"
#include "tests/support/temp_path.h"

namespace twiddle {

namespace {

// Decodes the bytes; where that fails, checks that the error names the file and has kind data.
bool decodes(const Bytes& bytes, Image& image) {
  const std::string file = write_file(temp_path("try.img"), bytes);
  try {
    image = read_image(file, 3);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(int(error.kind()), int(ErrorKind::data));
    EXPECT_NE(std::string(error.what()).find("try.img' is not a readable image: "), std::string::npos) << error.what();
    return false;
  }
}

std::string failure(const Bytes& bytes) {
  const std::string file = write_file(fresh_folder() / "x.img", bytes);
  return message_of(ErrorKind::data, [&] { read_image(file, 3); });
}

}  // namespace

TEST(ReadImage, GivesBackWhatEncodePngWrote) {
  const std::string file = (fresh_folder() / "x.png").string();
  for (const int channels : {1, 3}) {
    Image image{channels, 3, 5, {}};
    for (int i = 0; i < channels * 15; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 17));
    write_file(file, encode_png(image));
    EXPECT_EQ(read_image(file, channels).pixels, image.pixels) << channels;
  }
}

TEST(ReadImage, DecodesAJpeg) {
  const Image image = read_image(write_file(fresh_folder() / "small.jpg", small_jpeg()), 3);
  EXPECT_EQ(image.channels * 10000 + image.height * 100 + image.width, 31012);
  // Red rises by 20 a column, green by 25 a row, blue falls from 200 to 30 in the middle.
  EXPECT_NEAR(image.pixels[11], 220, 20);
  EXPECT_NEAR(image.pixels[120 + 9 * 12], 225, 20);
  EXPECT_NEAR(image.pixels[240], 200, 20);
  EXPECT_EQ(read_image(write_file(fresh_folder() / "small.jpg", small_jpeg()), 1).pixels.size(), 120u);
}

TEST(ReadImage, NamesOtherKinds) {
  const std::string webp = "RIFF\x10\x20\x01WEBPVP8 ";
  Bytes bytes(webp.begin(), webp.end());
  bytes.insert(bytes.begin() + 7, 0);
  const std::string file = write_file(fresh_folder() / "x.jpg", bytes);
  EXPECT_EQ(message_of(ErrorKind::data, [&] { read_image(file, 3); }),
            join("'", file, "' is not a JPEG or PNG file but a WebP image; convert it to PNG or JPEG"));
}

TEST(ReadImage, EveryTruncationOfAJpegIsAnError) {
  const Bytes whole = small_jpeg();
  Image image;
  ASSERT_TRUE(decodes(whole, image));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(decodes(Bytes(whole.begin(), whole.begin() + length), image)) << length << " of " << whole.size();
}

TEST(ReadImage, EveryTruncationOfAPngIsAnErrorUntilItsPixelsAreWhole) {
  const Bytes whole = encode_png({3, 4, 6, Bytes(72, 99)});
  Image image;
  ASSERT_TRUE(decodes(whole, image));
  for (std::size_t length = 0; length + 12 < whole.size(); ++length)  // 12: the closing chunk, which holds nothing
    EXPECT_FALSE(decodes(Bytes(whole.begin(), whole.begin() + length), image)) << length << " of " << whole.size();
}

TEST(ReadImage, EveryFlippedByteIsAnErrorOrAnImage) {
  for (const Bytes& whole : {small_jpeg(), encode_png({3, 4, 6, Bytes(72, 99)})}) {
    int decoded = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      Bytes flipped = whole;
      flipped[i] ^= 0xff;
      Image image;
      if (!decodes(flipped, image)) continue;
      ++decoded;
      EXPECT_EQ(image.pixels.size(), std::size_t(3) * image.height * image.width);
    }
    EXPECT_LT(decoded, static_cast<int>(whole.size()));
  }
}

TEST(ReadImage, SaysWhatIsWrong) {
  EXPECT_NE(failure({}).find("the file is empty"), std::string::npos);
  EXPECT_NE(failure(Bytes(40, 'a')).find("neither JPEG nor PNG (40 bytes)"), std::string::npos);
  EXPECT_NE(message_of(ErrorKind::data, [] { read_image("gone.png", 3); }).find("'gone.png': No such file"),
            std::string::npos);
  EXPECT_NE(message_of(ErrorKind::data, [] { read_image(".", 3); }).find("Is a directory"), std::string::npos);
}

TEST(ReadImage, NamesTruncatedFormat) {
  const auto half = [](Bytes bytes) {
    bytes.resize(bytes.size() / 2);
    return bytes;
  };
  const Bytes jpeg = half(small_jpeg()), png = half(encode_png({3, 4, 6, Bytes(72, 99)}));
  EXPECT_NE(failure(jpeg).find(join("JPEG of ", jpeg.size(), " bytes, truncated or damaged")), std::string::npos);
  EXPECT_EQ(failure(jpeg).find("png"), std::string::npos) << failure(jpeg);
  EXPECT_NE(failure(png).find(join("PNG of ", png.size(), " bytes, truncated or damaged")), std::string::npos);
}

TEST(ReadImage, RefusesHugeClaims) {
  Bytes png = png_of(3, 4, 4, 1);
  png[16] = 0, png[17] = 0, png[18] = 0x70, png[19] = 0;  // width 28,672
  png[20] = 0, png[21] = 0, png[22] = 0x08, png[23] = 0;  // height 2,048
  EXPECT_NE(failure(png).find("it claims 28672x2048 pixels in"), std::string::npos);
  png = png_of(1, 4, 4, 1);
  png[18] = png[22] = 0x70;
  EXPECT_NE(failure(png).find("28676x28676 pixels are more than the 67,108,864 that `max_pixels`"), std::string::npos)
      << failure(png);
  png[16] = 0x7f;
  EXPECT_NE(failure(png).find("too large"), std::string::npos) << failure(png);
}

TEST(ReadImage, RefusesMorePixelsThanAllowedBeforeItDecodes) {
  for (const Bytes& file : {png_of(3, 10, 12, 7), small_jpeg()}) {
    const std::string path = write_file(fresh_folder() / "x.img", file);
    EXPECT_EQ(read_image(path, 3, 120).pixels.size(), 360u);
    const std::string message = message_of(ErrorKind::data, [&] { read_image(path, 3, 119); });
    EXPECT_NE(message.find("12x10 pixels are more than the 119 that `max_pixels` under `data:` allows"),
              std::string::npos)
        << message;
  }
}

TEST(ReadImage, ShowsTheNameOfAnUnknownPartWithCare) {
  Bytes png = png_of(3, 4, 4, 1);
  const std::string part = "IDAT", hostile = "\x1b[2J";
  std::copy(hostile.begin(), hostile.end(), std::search(png.begin(), png.end(), part.begin(), part.end()));
  EXPECT_NE(failure(png).find("(\uFFFD[2J PNG chunk not known)"), std::string::npos) << failure(png);
}

TEST(ReadImage, TellsOfPixelsThatCannotBeHeldWhileTheyAreDecoded) {
  Bytes png{137, 'P',  'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D',  'R', 0,   0,   0x40, 0,  0,
            0,   0x40, 0,   16,  6,  0,  0,  0,  0, 0, 0, 0,  0,   0,   0xc0, 0,   'I', 'D', 'A',  'T'};
  const Bytes end{0, 0, 0, 0, 'I', 'E', 'N', 'D', 0, 0, 0, 0};
  png.resize(png.size() + 0xc000 + 4);
  png.insert(png.end(), end.begin(), end.end());
  const std::string file = write_file(fresh_folder() / "deep.png", png);  // 16384 x 16384 RGBA of 16 bits
  const std::string message = message_of(ErrorKind::data, [&] { read_image(file, 3, largest_max_pixels); });
  EXPECT_NE(message.find("16384x16384 pixels: damaged, or more than can be held"), std::string::npos) << message;
}

TEST(ReadImage, RefusesWhatIsNoRegularFile) {
  const std::string pipe = (fresh_folder() / "pipe.png").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")})
    EXPECT_NE(message_of(ErrorKind::data, [&] { read_image(path, 3); }).find("it is no regular file"),
              std::string::npos);
}

}  // namespace twiddle
