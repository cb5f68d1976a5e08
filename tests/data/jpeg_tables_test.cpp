#include "data/jpeg_tables.h"

#include "tests/data/fixtures.h"
#include "tests/data/small_jpeg.h"

namespace twiddle {

TEST(JpegTables, AcceptsWholeFilesAndWhatIsNoJpeg) {
  EXPECT_TRUE(huffman_tables_fit(small_jpeg()));
  EXPECT_TRUE(huffman_tables_fit(png_of(1, 2, 2, 3)));
  EXPECT_TRUE(huffman_tables_fit(Bytes{}));
}

TEST(JpegTables, FindsATableOfTooManyCodes) {
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

}  // namespace twiddle
