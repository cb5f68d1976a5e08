#include "data/images/decoders.h"

#include <sys/stat.h>

#include <algorithm>

#include "tests/data/fixtures.h"
#include "tests/data/flat_jpeg.h"
#include "tests/data/small_jpeg.h"
#include "tests/data/small_png.h"
#include "tests/support/temp_path.h"

namespace twiddle {

namespace {

// Decodes the bytes; if that fails, checks that the error names the file and has kind data.
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

TEST(ReadImage, ReadsOutputOfEncodePng) {
  const std::string file = (fresh_folder() / "x.png").string();
  for (const int channels : {1, 3}) {
    Image image{channels, 3, 5, {}};
    for (int i = 0; i < channels * 15; ++i) image.pixels.push_back(static_cast<std::uint8_t>(i * 17));
    write_file(file, encode_png(image));
    EXPECT_EQ(read_image(file, channels).pixels, image.pixels) << channels;
  }
}

TEST(ReadImage, ReadsGrayPngOfAnyDepth) {
  const auto pixels = [](const Bytes& png) { return read_image(write_file(fresh_folder() / "x.png", png), 1).pixels; };
  EXPECT_EQ(pixels(gray_png(3, 1, {0, 1, 1, 1, 0, 1})), (Bytes{0, 255, 255, 255, 0, 255}));
  EXPECT_EQ(pixels(gray_png(4, 2, {0, 1, 2, 3})), (Bytes{0, 85, 170, 255}));
  EXPECT_EQ(pixels(gray_png(4, 4, {0, 1, 8, 15})), (Bytes{0, 17, 136, 255}));
  EXPECT_EQ(pixels(gray_png(4, 16, {0, 255, 256, 65535})), (Bytes{0, 0, 1, 255}));
}

TEST(ReadImage, ReadsInterlacedPng) {
  std::vector<int> values;
  for (int i = 0; i < 13 * 11; ++i) values.push_back(i);
  const Bytes plain = gray_png(13, 8, values), interlaced = gray_png(13, 8, values, true);
  const std::filesystem::path folder = fresh_folder();
  const Image image = read_image(write_file(folder / "x.png", plain), 1);
  EXPECT_EQ(image.pixels, Bytes(values.begin(), values.end()));
  EXPECT_EQ(read_image(write_file(folder / "y.png", interlaced), 1).pixels, image.pixels);
}

TEST(ReadImage, IgnoresWrongEndings) {
  const std::filesystem::path folder = fresh_folder();
  EXPECT_EQ(read_image(write_file(folder / "x.JPEG", png_of(3, 2, 2, 9)), 3).pixels, Bytes(12, 9));
  EXPECT_EQ(read_image(write_file(folder / "x.png", small_jpeg()), 3).width, 12);
}

TEST(ReadImage, DecodesJpeg) {
  const Image image = read_image(write_file(fresh_folder() / "small.jpg", small_jpeg()), 3);
  EXPECT_EQ(image.channels * 10000 + image.height * 100 + image.width, 31012);
  // Red increases by 20 per column, green by 25 per row, blue falls from 200 to 30 in the middle.
  EXPECT_NEAR(image.pixels[11], 220, 20);
  EXPECT_NEAR(image.pixels[120 + 9 * 12], 225, 20);
  EXPECT_NEAR(image.pixels[240], 200, 20);
  EXPECT_EQ(read_image(write_file(fresh_folder() / "small.jpg", small_jpeg()), 1).pixels.size(), 120u);
}

// PIL's values; rounded down, four of them would be one less.
TEST(ReadImage, RoundsGrayAsPil) {
  const Bytes reds{10, 255, 0, 0, 201, 1, 255}, greens{20, 0, 255, 0, 7, 2, 255}, blues{30, 0, 0, 255, 99, 2, 254};
  Image image{3, 1, 7, reds};
  image.pixels.insert(image.pixels.end(), greens.begin(), greens.end());
  image.pixels.insert(image.pixels.end(), blues.begin(), blues.end());
  const std::string file = write_file(fresh_folder() / "x.png", encode_png(image));
  EXPECT_EQ(read_image(file, 1).pixels, (Bytes{18, 76, 150, 29, 75, 2, 255}));
}

// Values as PIL reads such files: ink is stored inverted, with and without Adobe's marker.
TEST(ReadImage, ReadsCmykAsPil) {
  const Bytes marker = adobe_segment(0);
  for (const Bytes& segments : {marker, Bytes{}}) {
    const std::string file = write_file(fresh_folder() / "x.jpg", flat_jpeg({60, 120, 200, 180}, segments));
    Bytes expected(64, 42);
    expected.insert(expected.end(), 64, 85);
    expected.insert(expected.end(), 64, 141);
    EXPECT_EQ(read_image(file, 3).pixels, expected);
    EXPECT_EQ(read_image(file, 1).pixels, Bytes(64, 79));
  }
}

// Gray YCCK: the color 255 - Y times the black channel. Adobe's marker with an unknown transform is YCCK for libjpeg.
TEST(ReadImage, ReadsYcckWithAnyTransform) {
  for (const std::uint8_t transform : {2, 1})
    for (const int channels : {1, 3}) {
      const Bytes jpeg = flat_jpeg({55, 128, 128, 51}, adobe_segment(transform));
      const std::string file = write_file(fresh_folder() / "x.jpg", jpeg);
      EXPECT_EQ(read_image(file, channels).pixels, Bytes(static_cast<std::size_t>(64 * channels), 40));
    }
}

TEST(ReadByStb, ReadsRgbJpegAsGray) {
  for (const Bytes& jpeg : {flat_jpeg({201, 7, 99}, adobe_segment(0)), flat_jpeg({201, 7, 99}, {}, {'R', 'G', 'B'})}) {
    EXPECT_EQ(read_by_stb(jpeg, 1, "x.jpg").pixels, Bytes(64, 75));
    EXPECT_EQ(read_by_stb(jpeg, 3, "x.jpg").pixels[64], 7);
  }
  EXPECT_EQ(read_by_stb(flat_jpeg({75, 128, 128}), 1, "x.jpg").pixels, Bytes(64, 75));
  EXPECT_EQ(read_by_stb(flat_jpeg({75}), 3, "x.jpg").pixels, Bytes(192, 75));
}

// As in a motion photo, in which a video follows the image.
TEST(ReadByStb, ReadsJpegWithTrailingBytes) {
  const Image alone = read_by_stb(small_jpeg(), 3, "x.jpg");
  for (const Bytes& film : {Bytes(1024, 0), Bytes{'f', 't', 'y', 'p', 0xff, 0xda, 0, 1}, small_jpeg()}) {
    Bytes file = small_jpeg();
    file.insert(file.end(), film.begin(), film.end());
    EXPECT_EQ(read_by_stb(file, 3, "x.jpg").pixels, alone.pixels);
  }
}

TEST(ReadImage, NamesOtherKinds) {
  const std::string webp = "RIFF\x10\x20\x01WEBPVP8 ";
  Bytes bytes(webp.begin(), webp.end());
  bytes.insert(bytes.begin() + 7, 0);
  const std::string file = write_file(fresh_folder() / "x.jpg", bytes);
  EXPECT_EQ(message_of(ErrorKind::data, [&] { read_image(file, 3); }),
            join("'", file, "' is not a JPEG or PNG file but a WebP image; convert it to PNG or JPEG"));
}

TEST(ReadImage, RefusesEveryTruncationOfJpeg) {
  const Bytes whole = small_jpeg();
  Image image;
  ASSERT_TRUE(decodes(whole, image));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(decodes(Bytes(whole.begin(), whole.begin() + length), image)) << length << " of " << whole.size();
}

TEST(ReadImage, RefusesPngWithTruncatedPixels) {
  const Bytes whole = encode_png({3, 4, 6, Bytes(72, 99)});
  Image image;
  ASSERT_TRUE(decodes(whole, image));
  for (std::size_t length = 0; length + 12 < whole.size(); ++length)  // 12: the closing chunk, which holds nothing
    EXPECT_FALSE(decodes(Bytes(whole.begin(), whole.begin() + length), image)) << length << " of " << whole.size();
}

TEST(ReadImage, SurvivesEveryFlippedByte) {
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

TEST(ReadImage, ReportsInvalidFiles) {
  EXPECT_NE(failure({}).find("the file is empty"), std::string::npos);
  EXPECT_NE(failure(Bytes(40, '\1')).find("neither JPEG nor PNG (40 bytes)"), std::string::npos);
  EXPECT_NE(failure(Bytes(40, 'a')).find("' is not a JPEG or PNG file but text"), std::string::npos);
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

TEST(ReadImage, RefusesHugeDimensions) {
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

TEST(ReadImage, RefusesTooManyPixelsBeforeDecoding) {
  for (const Bytes& file : {png_of(3, 10, 12, 7), small_jpeg()}) {
    const std::string path = write_file(fresh_folder() / "x.img", file);
    EXPECT_EQ(read_image(path, 3, 120).pixels.size(), 360u);
    const std::string message = message_of(ErrorKind::data, [&] { read_image(path, 3, 119); });
    EXPECT_NE(message.find("12x10 pixels are more than the 119 that `max_pixels` under `data:` allows"),
              std::string::npos)
        << message;
  }
}

TEST(ReadImage, EscapesNameOfUnknownPngChunk) {
  Bytes png = png_of(3, 4, 4, 1);
  const std::string part = "IDAT", hostile = "\x1b[2J";
  std::copy(hostile.begin(), hostile.end(), std::search(png.begin(), png.end(), part.begin(), part.end()));
  EXPECT_NE(failure(png).find("(\uFFFD[2J PNG chunk not known)"), std::string::npos) << failure(png);
}

TEST(ReadImage, FailsIfDecodingExhaustsMemory) {
  Bytes png{137, 'P',  'N', 'G', 13, 10, 26, 10, 0, 0, 0, 13, 'I', 'H', 'D',  'R', 0,   0,   0x40, 0,  0,
            0,   0x40, 0,   16,  6,  0,  0,  0,  0, 0, 0, 0,  0,   0,   0xc0, 0,   'I', 'D', 'A',  'T'};
  const Bytes end{0, 0, 0, 0, 'I', 'E', 'N', 'D', 0, 0, 0, 0};
  png.resize(png.size() + 0xc000 + 4);
  png.insert(png.end(), end.begin(), end.end());
  const std::string file = write_file(fresh_folder() / "deep.png", png);  // 16384 x 16384 RGBA of 16 bits
  const std::string message = message_of(ErrorKind::data, [&] { read_image(file, 3, largest_max_pixels); });
  EXPECT_NE(message.find("16384x16384 pixels: damaged, or more than can be held"), std::string::npos) << message;
}

TEST(ReadImage, RefusesPipesAndDevices) {
  const std::string pipe = (fresh_folder() / "pipe.png").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")})
    EXPECT_NE(message_of(ErrorKind::data, [&] { read_image(path, 3); }).find("it is not a regular file"),
              std::string::npos);
}

}  // namespace twiddle
