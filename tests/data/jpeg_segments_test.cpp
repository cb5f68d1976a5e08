#include "data/images/jpeg_segments.h"

#include <algorithm>

#include "tests/data/fixtures.h"
#include "tests/data/small_jpeg.h"

namespace twiddle {

TEST(HuffmanTablesFit, AcceptsIntactFilesAndOtherKinds) {
  EXPECT_TRUE(huffman_tables_fit(small_jpeg()));
  EXPECT_TRUE(huffman_tables_fit(png_of(1, 2, 2, 3)));
  EXPECT_TRUE(huffman_tables_fit(Bytes{}));
}

TEST(HuffmanTablesFit, RejectsTableWithTooManyCodes) {
  Bytes file{0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xff, 0xc4, 1, 19, 0};  // an APP0 segment, a fill byte, DHT
  file.insert(file.end(), 15, 17);
  file.push_back(1);  // 15 x 17 + 1 = 256 codes
  file.insert(file.end(), 256, 0);
  EXPECT_TRUE(huffman_tables_fit(file));
  ++file[14];
  EXPECT_FALSE(huffman_tables_fit(file));
  file.resize(40);  // nor is it trusted where the codes themselves are missing
  EXPECT_FALSE(huffman_tables_fit(file));
}

TEST(HasJpegEnd, IgnoresBytesAfterEnd) {
  Bytes file = small_jpeg();
  EXPECT_TRUE(has_jpeg_end(file));
  for (const int byte : {0xff, 0xda, 0, 8, 0xff, 0xd8}) {
    file.push_back(static_cast<std::uint8_t>(byte));
    EXPECT_TRUE(has_jpeg_end(file));
  }
}

TEST(HasJpegEnd, IgnoresEndsInsideSegments) {
  Bytes file = small_jpeg();
  file.resize(file.size() - 2);
  const Bytes comment{0xff, 0xfe, 0, 4, 0xff, 0xd9};
  file.insert(file.begin() + 2, comment.begin(), comment.end());
  EXPECT_FALSE(has_jpeg_end(file));
  EXPECT_FALSE(has_jpeg_end(Bytes{0xff, 0xd8, 0xff, 0xd9})) << "no scan";
}

TEST(HasJpegEnd, RejectsTruncatedImageBeforeAnother) {
  Bytes file = small_jpeg();
  file.resize(file.size() - 9);
  const Bytes other = small_jpeg();
  file.insert(file.end(), other.begin(), other.end());
  EXPECT_FALSE(has_jpeg_end(file));
}

TEST(StoresGray, DistinguishesYcbcrFromRgb) {
  Bytes file = small_jpeg();
  EXPECT_TRUE(stores_gray(file));
  const Bytes frame{0xff, 0xc0};
  const auto names = std::search(file.begin(), file.end(), frame.begin(), frame.end()) + 10;
  names[0] = 'R', names[3] = 'G', names[6] = 'B';
  EXPECT_FALSE(stores_gray(file));
}

}  // namespace twiddle
