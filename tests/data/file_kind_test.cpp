#include "data/images/file_kind.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/data/fixtures.h"
#include "tests/data/small_jpeg.h"

namespace twiddle {

namespace {

using namespace std::string_literals;

std::string kind_of(const std::string& first_bytes, FileUse use = FileUse::image) {
  return kind_of_file(Bytes(first_bytes.begin(), first_bytes.end()), use);
}

std::string bmp() {
  return "BM\x36\x30\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0"s;
}

std::string zip_of(const std::string& name) {
  std::string header = "PK\x03\x04"s + std::string(22, '\0');
  header += static_cast<char>(name.size());
  return header + "\0\0\0"s + name + "content";
}

}  // namespace

TEST(KindOfFile, NamesImages) {
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"GIF89a\1\0\1\0"s, "a GIF image"},
      {"RIFF\x24\0\0\0WEBPVP8 "s, "a WebP image"},
      {"II*\0\x08\0\0\0"s, "a TIFF image"},
      {"MM\0*\0\0\0\x08"s, "a TIFF image"},
      {bmp(), "a BMP image"},
      {"\0\0\0\x18"
       "ftypheic"s,
       "a HEIC image"},
      {"\0\0\0\x1c"
       "ftypavif"s,
       "an AVIF image"},
      {"P6\n4 4\n255\n"s, "a PPM, PGM or PBM image"},
      {"<?xml version=\"1.0\"?>\n<svg"s, "an XML file, such as an SVG image"}};
  for (const auto& [bytes, name] : kinds) {
    EXPECT_EQ(kind_of(bytes), name + "; convert it to PNG or JPEG");
    EXPECT_EQ(kind_of(bytes, FileUse::dataset), name);
  }
}

TEST(KindOfFile, NamesWeights) {
  const std::vector<std::pair<std::string, std::string>> kinds{
      {zip_of("archive/data.pkl"), "a PyTorch file (.pt or .pth)"},
      {zip_of("script/data/0"), "a PyTorch file (.pt or .pth)"},
      {"\x80\x02\x8a\x0al\xfc\x9c"
       "F\xf9 j\xa8P\x19.\x80\x02M"s,
       "a Python pickle, such as an old .pt file"},
      {"\x80\x04\x95\x10\0\0\0\0\0\0\0"s, "a Python pickle, such as an old .pt file"},
      {"\x89HDF\r\n\x1a\n\0\0"s, "an HDF5 file, such as Keras writes"},
      {zip_of("weight.npy"), "NumPy arrays (.npz)"},
      {"\x93NUMPY\1\0v\0{'descr"s, "a NumPy array (.npy)"},
      {"\x08\x07\x12\x07pytorch\x1a\x05"s, "an ONNX model"}};
  for (const auto& [bytes, name] : kinds) {
    EXPECT_EQ(kind_of(bytes, FileUse::weights), name + "; save its tensors as safetensors (docs/weights.md)");
    EXPECT_EQ(kind_of(bytes), name);
  }
}

TEST(KindOfFile, SuggestsFixForAnyUse) {
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "a git-lfs pointer; run `git lfs pull`"},
      {"\n  <!DOCTYPE HTML>\n<html>", "a web page (HTML); download the file again"},
      {"<html lang=en>", "a web page (HTML)"},
      {"\0\x05\x16\x07\0\2\0\0Mac OS X"s, "metadata that macOS writes next to a file (AppleDouble); delete it"},
      {"\x1f\x8b\x08\0\0\0\0\0"s, "a gzip file; decompress it with gunzip"},
      {zip_of("cats/1.jpg"), "a ZIP archive; unpack it"},
      {std::string(257, 'a') + "ustar\0"s, "a tar archive; unpack it"}};
  for (const FileUse use : {FileUse::image, FileUse::dataset, FileUse::weights})
    for (const auto& [bytes, start] : kinds) EXPECT_EQ(kind_of(bytes, use).rfind(start, 0), 0u) << kind_of(bytes, use);
}

TEST(KindOfFile, IgnoresListsAndValidWeights) {
  for (const char* list : {"BMW/1.jpg 0\n", "P6/1.png 3\n", "version1/a.png 0\n", "PKW/1.jpg 1\n", "a.png\n", ""}) {
    const std::string padded = list + std::string(250, ' ') + "mustard/1.jpg 0\n";
    EXPECT_EQ(kind_of(list, FileUse::dataset), "") << list;
    EXPECT_EQ(kind_of(padded, FileUse::dataset), "") << list;
  }
  // The length field of its header starts like a pickle and like a gzip file.
  for (const std::string& length : {"\x80\x02\0\0\0\0\0\0"s, "\x1f\x8b\x08\0\0\0\0\0"s}) {
    EXPECT_EQ(kind_of(length + "{\"", FileUse::weights), "");
    EXPECT_EQ(kind_of(length + "{\"", FileUse::image), "a safetensors file");
  }
}

TEST(KindOfFile, AcceptsEveryTruncation) {
  for (const std::string& whole : {bmp(), zip_of("archive/data.pkl"), "\x80\x02\x8a\x0a"s, "\x08\x07\x12\x07pytorch"s})
    for (std::size_t length = 0; length <= whole.size(); ++length)
      EXPECT_LE(kind_of(whole.substr(0, length)).size(), 100u);
}

}  // namespace twiddle
