#include "data/images/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "framework/error.h"

namespace twiddle {

namespace {

using namespace std::string_view_literals;
using Bytes = std::span<const std::uint8_t>;

constexpr const char* convert_image = "convert it to PNG or JPEG";
constexpr const char* convert_weights = "save its tensors as safetensors (docs/weights.md)";
constexpr const char* decompress = "decompress it";
constexpr const char* unpack = "unpack it";

// One kind, with what to do for each use; null: nothing helps there.
struct Kind {
  const char* name;
  const char* for_images;
  const char* for_datasets;
  const char* for_weights;
};

constexpr Kind image(const char* name) {
  return {name, convert_image, nullptr, nullptr};
}
constexpr Kind weights(const char* name) {
  return {name, nullptr, nullptr, convert_weights};
}
constexpr Kind anything(const char* name, const char* cure) {
  return {name, cure, cure, cure};
}

struct Signature {
  std::size_t offset;
  std::string_view bytes;
  Kind kind;
};

// Long enough that no image list begins so.
constexpr std::array signatures{
    Signature{0, "version https://git-lfs.github.com/spec/"sv,
              anything("a git-lfs pointer", "run `git lfs pull` to download the file itself")},
    Signature{0, "\x00\x05\x16\x07"sv,
              anything("metadata that macOS writes next to a file (AppleDouble)", "delete it")},
    Signature{0, "\xff\xd8\xff"sv, {"a JPEG image", nullptr, nullptr, nullptr}},
    Signature{0, "\x89PNG\r\n\x1a\n"sv, {"a PNG image", nullptr, nullptr, nullptr}},
    Signature{0, "GIF87a"sv, image("a GIF image")},
    Signature{0, "GIF89a"sv, image("a GIF image")},
    Signature{8, "WEBPVP8"sv, image("a WebP image")},
    Signature{0, "II*\0"sv, image("a TIFF image")},
    Signature{0, "MM\0*"sv, image("a TIFF image")},
    Signature{0, "II+\0"sv, image("a BigTIFF image")},
    Signature{0, "MM\0+"sv, image("a BigTIFF image")},
    Signature{4, "ftypheic"sv, image("a HEIC image")},
    Signature{4, "ftypheix"sv, image("a HEIC image")},
    Signature{4, "ftyphevc"sv, image("a HEIC image")},
    Signature{4, "ftypmif1"sv, image("a HEIF image")},
    Signature{4, "ftypmsf1"sv, image("a HEIF image")},
    Signature{4, "ftypavif"sv, image("an AVIF image")},
    Signature{4, "ftypavis"sv, image("an AVIF image")},
    Signature{4, "ftyp"sv, anything("a video (MP4 or MOV)", nullptr)},
    Signature{0, "\0\0\0\x0cJXL \r\n\x87\n"sv, image("a JPEG XL image")},
    Signature{0, "\xff\x0a"sv, image("a JPEG XL image")},
    Signature{0, "\0\0\0\x0cjP  \r\n\x87\n"sv, image("a JPEG 2000 image")},
    Signature{0, "8BPS\0\1"sv, image("a Photoshop image")},
    Signature{0, "%PDF-"sv, image("a PDF document")},
    Signature{0, "\x89HDF\r\n\x1a\n"sv, weights("an HDF5 file, such as Keras writes")},
    Signature{0, "\x93NUMPY"sv, weights("a NumPy array (.npy)")},
    Signature{0, "\x1f\x8b\x08"sv, anything("a gzip file", "decompress it with gunzip, a .tar.gz with tar -xzf")},
    Signature{0,
              "\xfd"
              "7zXZ\0"sv,
              anything("an xz file", decompress)},
    Signature{0, "\x28\xb5\x2f\xfd"sv, anything("a zstd file", decompress)},
    Signature{4, "1AY&SY"sv, anything("a bzip2 file", decompress)},
    Signature{0, "Rar!\x1a\x07"sv, anything("a RAR archive", unpack)},
    Signature{0, "7z\xbc\xaf\x27\x1c"sv, anything("a 7z archive", unpack)},
    Signature{257, "ustar\0"sv, anything("a tar archive", "unpack it with tar -xf")},
    Signature{257, "ustar  \0"sv, anything("a tar archive", "unpack it with tar -xf")},
};

bool has(Bytes bytes, const Signature& signature) {
  return bytes.size() > signature.offset && begins_with(bytes.subspan(signature.offset), signature.bytes);
}

std::uint32_t number(Bytes bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | bytes[at + i];
  return value;
}

// A length of eight bytes, of which those of all headers that can be read have five zeros, and a JSON object.
bool is_safetensors(Bytes bytes) {
  return bytes.size() > 8 && bytes[8] == '{' && number(bytes, 4, 4) == 0;
}

// "BM", a size, four zeros; then, from the pixels' offset on, the length of a header that is known.
bool is_bmp(Bytes bytes) {
  constexpr std::array<std::uint32_t, 7> headers{12, 40, 52, 56, 64, 108, 124};
  return begins_with(bytes, "BM") && bytes.size() >= 18 && number(bytes, 6, 4) == 0 &&
         std::find(headers.begin(), headers.end(), number(bytes, 14, 4)) != headers.end();
}

// "P1" to "P7" and a line end: PBM, PGM, PPM and PAM.
bool is_netpbm(Bytes bytes) {
  return bytes.size() > 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' && bytes[2] == '\n';
}

// The protocol, then an opcode: a frame, a mark, a list, a dictionary, a tuple, a number or a global name.
bool is_pickle(Bytes bytes) {
  return bytes.size() > 3 && bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5 &&
         "\x95(]})\x8a"
         "cK"sv.find(static_cast<char>(bytes[2])) != std::string_view::npos;
}

// Protocol buffers: version (1 to 15), then the producer's name, the graph or the operators' versions.
bool is_onnx(Bytes bytes) {
  return bytes.size() > 8 && bytes[0] == 8 && bytes[1] >= 1 && bytes[1] <= 15 &&
         "\x12\x3a\x42"sv.find(static_cast<char>(bytes[2])) != std::string_view::npos;
}

// Returns the name of a ZIP archive's first file; empty if it is not a ZIP archive.
std::string_view first_of_zip(Bytes bytes) {
  constexpr std::size_t header = 30;
  if (!begins_with(bytes, "PK\x03\x04") || bytes.size() < header) return {};
  const std::size_t length = std::min<std::size_t>(number(bytes, 26, 2), bytes.size() - header);
  return {reinterpret_cast<const char*>(bytes.data()) + header, length};
}

// The first characters that are no blanks, as small letters.
std::string first_characters(Bytes bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes.first(std::min(bytes.size(), bytes_of_kind))) {
    if (text.empty() && std::isspace(byte)) continue;
    text += static_cast<char>(std::tolower(byte));
  }
  return text;
}

bool is_text(Bytes bytes) {
  const Bytes first = bytes.first(std::min(bytes.size(), bytes_of_kind));
  return !first.empty() &&
         std::all_of(first.begin(), first.end(), [](int byte) { return std::isprint(byte) || std::isspace(byte); });
}

const char* cure_of(const Kind& kind, FileUse use) {
  return use == FileUse::image ? kind.for_images : use == FileUse::dataset ? kind.for_datasets : kind.for_weights;
}

Kind recognized(Bytes bytes) {
  const auto found =
      std::find_if(signatures.begin(), signatures.end(), [&](const Signature& each) { return has(bytes, each); });
  if (found != signatures.end()) return found->kind;
  if (is_bmp(bytes)) return image("a BMP image");
  if (is_netpbm(bytes)) return image("a PPM, PGM or PBM image");
  if (is_pickle(bytes)) return weights("a Python pickle, such as an old .pt file");
  if (is_onnx(bytes)) return weights("an ONNX model");
  if (const std::string_view first = first_of_zip(bytes); !first.empty()) {
    if (first.ends_with("/data.pkl") || first.ends_with("/data/0")) return weights("a PyTorch file (.pt or .pth)");
    if (first.ends_with(".npy")) return weights("NumPy arrays (.npz)");
    return anything("a ZIP archive", unpack);
  }
  const std::string text = first_characters(bytes);
  if (text.starts_with("<!doctype html") || text.starts_with("<html") || text.starts_with("<head"))
    return anything("a web page (HTML)", "download the file again: the server sent a page instead");
  if (text.starts_with("<svg") || text.starts_with("<?xml")) return image("an XML file, such as an SVG image");
  return {nullptr, nullptr, nullptr, nullptr};
}

}  // namespace

std::string kind_of_file(std::span<const std::uint8_t> first_bytes, FileUse use) {
  if (is_safetensors(first_bytes)) return use == FileUse::weights ? "" : "a safetensors file";
  const Kind kind = recognized(first_bytes);
  if (kind.name == nullptr) return use == FileUse::image && is_text(first_bytes) ? "text" : "";
  const char* const cure = cure_of(kind, use);
  return cure == nullptr ? kind.name : join(kind.name, "; ", cure);
}

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::equal(text.begin(), text.end(), bytes.begin(), [](char a, std::uint8_t b) {
           return static_cast<std::uint8_t>(a) == b;
         });
}

}  // namespace twiddle
