#include "framework/printable.h"

#include <gtest/gtest.h>

namespace twiddle {

TEST(Printable, KeepsPrintableText) {
  for (const char* text : {"", "plain", "Näme mit ☃", "名前", "\U0001F600", "a\u00a0b"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, ReplacesControlCharacters) {
  EXPECT_EQ(printable("\x1b[2J"), "\uFFFD[2J");
  EXPECT_EQ(printable("8\nfake line: 100%"), "8\uFFFDfake line: 100%");
  EXPECT_EQ(printable("\t\r\x7f"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(printable("\u009b2J"), "\uFFFD2J");                // CSI as one character of C1
  EXPECT_EQ(printable("a\u2028b\u202ec"), "a\uFFFDb\uFFFDc");  // a line separator, and writing from the right
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\uFFFDb");
}

TEST(Printable, ReplacesInvalidUtf8) {
  EXPECT_EQ(printable("latin\xe9"), "latin\uFFFD");
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\uFFFD2J");                                       // CSI as one byte
  EXPECT_EQ(printable("\xc3"), "\uFFFD");                      // truncated
  EXPECT_EQ(printable("\xc0\xaf"), "\uFFFD\uFFFD");            // '/' in a longer form than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), "\uFFFD\uFFFD\uFFFD");  // half of a pair of UTF-16
  EXPECT_EQ(printable("\xf4\x90\x80\x80").size(), 12u);        // beyond the last code
  EXPECT_TRUE(is_utf8("Näme\n"));
  EXPECT_FALSE(is_utf8("N\xe4me"));
}

TEST(Printable, KeepsLineBreaks) {
  EXPECT_EQ(printable_lines("a\n\tb\r\x1b"), "a\n\tb\uFFFD\uFFFD");
}

TEST(Printable, TruncatesLongText) {
  EXPECT_EQ(shown("F64"), "F64");
  EXPECT_EQ(shown("\x1b[2J"), "\uFFFD[2J");
  EXPECT_EQ(shown(std::string(200, 'a')), std::string(200, 'a'));
  EXPECT_EQ(shown(std::string(1000, 'a') + ".png"), std::string(140, 'a') + "..." + std::string(53, 'a') + ".png");
  EXPECT_EQ(shown(std::string(139, 'a') + "ä" + std::string(100, 'b')),
            std::string(139, 'a') + "ä..." + std::string(57, 'b'));  // no half characters
}

}  // namespace twiddle
