#include "data/images/orientation.h"

#include <utility>
#include <vector>

#include "tests/data/fixtures.h"
#include "tests/data/small_jpeg.h"

namespace twiddle {

namespace {

// EXIF with a tag before the orientation, in either byte order.
Bytes exif_of(int orientation, bool little, std::uint8_t type = 3) {
  Bytes bytes{'E', 'x', 'i', 'f', 0, 0};
  const auto append = [&](std::uint32_t number, int count) {
    for (int i = 0; i < count; ++i)
      bytes.push_back(static_cast<std::uint8_t>(number >> 8 * (little ? i : count - 1 - i)));
  };
  bytes.insert(bytes.end(), 2, little ? 'I' : 'M');
  append(42, 2), append(8, 4);
  append(2, 2);
  append(0x0100, 2), append(4, 2), append(1, 4), append(7, 4);
  append(0x0112, 2), append(type, 2), append(1, 4);
  type == 4 ? append(static_cast<std::uint32_t>(orientation), 4)
            : (append(static_cast<std::uint32_t>(orientation), 2), append(0, 2));
  append(0, 4);
  return bytes;
}

Bytes jpeg_with(const Bytes& exif) {
  Bytes file = small_jpeg(), segment{0xff, 0xe1, 0, static_cast<std::uint8_t>(exif.size() + 2)};
  segment.insert(segment.end(), exif.begin(), exif.end());
  file.insert(file.begin() + 2, segment.begin(), segment.end());
  return file;
}

// With a checksum of zeros, which is not read.
Bytes png_with(const Bytes& exif, Bytes file) {
  Bytes chunk{0, 0, 0, static_cast<std::uint8_t>(exif.size()), 'e', 'X', 'I', 'f'};
  chunk.insert(chunk.end(), exif.begin(), exif.end());
  chunk.insert(chunk.end(), 4, 0);
  file.insert(file.begin() + 33, chunk.begin(), chunk.end());  // signature and header
  return file;
}

// 2 x 3 pixels in two channels, the second 10 above the first.
const Image stored{2, 2, 3, {1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 16}};

}  // namespace

TEST(OrientationOf, ReadsBothFormatsAndByteOrders) {
  const Bytes png = png_of(1, 2, 3, 9);
  for (const bool little : {true, false})
    for (int orientation = 1; orientation <= 8; ++orientation) {
      const Bytes exif = exif_of(orientation, little);
      EXPECT_EQ(orientation_of(jpeg_with(exif)), orientation) << little;
      EXPECT_EQ(orientation_of(png_with(exif, png)), orientation) << little;
      EXPECT_EQ(orientation_of(png_with(Bytes(exif.begin() + 6, exif.end()), png)), orientation) << little;
      EXPECT_EQ(orientation_of(jpeg_with(exif_of(orientation, little, 4))), orientation) << little;
    }
}

TEST(OrientationOf, IsUprightWithoutValidValue) {
  EXPECT_EQ(orientation_of(small_jpeg()), 1);
  EXPECT_EQ(orientation_of(png_of(1, 2, 3, 9)), 1);
  EXPECT_EQ(orientation_of(Bytes{}), 1);
  for (const int value : {0, 9, 65535}) EXPECT_EQ(orientation_of(jpeg_with(exif_of(value, true))), 1) << value;
  EXPECT_EQ(orientation_of(jpeg_with(exif_of(6, true, 2))), 1) << "a string";
  Bytes far = exif_of(6, true);
  far[10] = far[11] = far[12] = far[13] = 0xff;  // where the directory begins
  EXPECT_EQ(orientation_of(jpeg_with(far)), 1);
}

TEST(OrientationOf, AcceptsEveryTruncation) {
  for (const Bytes& whole : {jpeg_with(exif_of(6, true)), png_with(exif_of(6, false), png_of(1, 2, 3, 9))})
    for (std::size_t length = 0; length <= whole.size(); ++length) {
      const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));  // a separate allocation
      const int orientation = orientation_of(part);
      EXPECT_TRUE(orientation == 1 || orientation == 6) << length;
    }
}

// Matches PIL's ImageOps.exif_transpose.
TEST(Oriented, RotatesAndMirrors) {
  const std::vector<std::pair<int, Bytes>> upright_pixels{
      {1, {1, 2, 3, 4, 5, 6}}, {2, {3, 2, 1, 6, 5, 4}}, {3, {6, 5, 4, 3, 2, 1}}, {4, {4, 5, 6, 1, 2, 3}},
      {5, {1, 4, 2, 5, 3, 6}}, {6, {4, 1, 5, 2, 6, 3}}, {7, {6, 3, 5, 2, 4, 1}}, {8, {3, 6, 2, 5, 1, 4}}};
  for (const auto& [orientation, pixels] : upright_pixels) {
    Bytes both = pixels;
    for (const std::uint8_t value : pixels) both.push_back(static_cast<std::uint8_t>(value + 10));
    const Image image = oriented(stored, orientation);
    EXPECT_EQ(image.pixels, both) << orientation;
    EXPECT_EQ(image.height, orientation < 5 ? 2 : 3) << orientation;
    EXPECT_EQ(image.width, orientation < 5 ? 3 : 2) << orientation;
  }
}

TEST(ReadImage, AppliesExifOrientation) {
  const std::filesystem::path folder = fresh_folder();
  const Image png_image = {1, 2, 3, {1, 2, 3, 4, 5, 6}};
  const std::string jpeg = write_file(folder / "a.jpg", jpeg_with(exif_of(6, true))),
                    png = write_file(folder / "a.png", png_with(exif_of(6, true), encode_png(png_image)));
  EXPECT_EQ(read_image(png, 1).pixels, (Bytes{4, 1, 5, 2, 6, 3}));
  EXPECT_EQ(read_image(png, 1, usual_max_pixels, false).pixels, png_image.pixels);
  const Image lying = read_image(jpeg, 3, usual_max_pixels, false);
  EXPECT_EQ(lying.height * 100 + lying.width, 1012);
  EXPECT_EQ(read_image(jpeg, 3).pixels, oriented(lying, 6).pixels);
}

TEST(Dataset, OrientsImagesUnlessSwitchedOff) {
  const std::filesystem::path folder = fresh_folder();
  write_file(folder / "cat" / "a.png", png_with(exif_of(8, true), png_of(1, 2, 3, 9)));
  const std::string list = write_text(folder / "list.txt", "cat/a.png 0\n");
  for (const bool orient : {true, false}) {
    DatasetSite site{"", {3, 8, 8}, 0};
    site.orient = orient;
    Image image;
    open_dataset("image_folder", mapping({{"path", folder.string()}}), site)->get(0, image);
    EXPECT_EQ(image.height, orient ? 3 : 2);
    open_dataset("image_list", mapping({{"file", list}}), site)->get(0, image);
    EXPECT_EQ(image.height, orient ? 3 : 2);
  }
}

}  // namespace twiddle
