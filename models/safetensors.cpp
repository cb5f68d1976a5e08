#include "models/safetensors.h"

#include <xxhash.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "data/file_kind.h"
#include "data/files.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "models/safetensors_header.h"

namespace twiddle {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian, and so are our arrays");

namespace {

using Arrays = std::map<std::string, HostArray>;
using Metadata = std::map<std::string, std::string>;
using Stored = SafeTensorsHeader::Stored;

constexpr std::string_view checksum_key = "xxh3";

std::string hash(const void* bytes, std::size_t count) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  const std::uint64_t value = XXH3_64bits(bytes, count);
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[(value >> shift) & 15];
  return text;
}

std::string array_key(const std::string& name) {
  return join(checksum_key, ":", name);
}

bool is_checksum(std::string_view key) {
  return key.starts_with(checksum_key);
}

// Names, types, shapes and metadata, the arrays' own checksums among it: all of a file but its layout.
std::string contents_hash(const Arrays& arrays, const Metadata& metadata) {
  std::string text;
  const auto append = [&text](std::string_view part) { text += join(part.size(), ":", part); };
  for (const auto& [name, array] : arrays) {
    append(name);
    append(array.type == DType::f32 ? "F32" : "I32");
    append(to_string(array.shape));
  }
  for (const auto& [key, value] : metadata) {
    if (key == checksum_key) continue;
    append(key);
    append(value);
  }
  return hash(text.data(), text.size());
}

Metadata with_checksums(const Arrays& arrays, Metadata metadata) {
  std::erase_if(metadata, [](const auto& entry) { return is_checksum(entry.first); });
  for (const auto& [name, array] : arrays) metadata[array_key(name)] = hash(array.bytes.data(), array.bytes.size());
  metadata[std::string(checksum_key)] = contents_hash(arrays, metadata);
  return metadata;
}

// A file from elsewhere may have no checksums at all; one that has any must have them all, and right.
void verify_checksums(const SafeTensors& contents, const std::string& path) {
  const auto first = contents.metadata.lower_bound(std::string(checksum_key));
  if (first == contents.metadata.end() || !is_checksum(first->first)) return;
  const auto verify = [&](const std::string& key, const std::string& actual, const std::string& what) {
    const auto kept = contents.metadata.find(key);
    if (kept == contents.metadata.end())
      throw Error(ErrorKind::data, join(printable(path), ": damaged: ", what, " has lost its checksum"));
    if (kept->second != actual)
      throw Error(ErrorKind::data, join(printable(path), ": damaged: ", what, " has checksum ", actual,
                                        ", the file says ", shown(kept->second)));
  };
  for (const auto& [name, array] : contents.arrays)
    verify(array_key(name), hash(array.bytes.data(), array.bytes.size()), join("'", name, "'"));
  verify(std::string(checksum_key), contents_hash(contents.arrays, contents.metadata), "the header");
}

float from_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, digits = half & 0x3ffu;
  if (exponent == 0) return (sign != 0 ? -0x1p-24f : 0x1p-24f) * static_cast<float>(digits);  // zero, or below normal
  return std::bit_cast<float>(sign | ((exponent == 31 ? 255 : exponent + 112) << 23) | (digits << 13));
}

// The upper half of a float.
float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t(bits) << 16);
}

std::vector<std::uint8_t> as_floats(const std::vector<std::uint8_t>& halves, float (*convert)(std::uint16_t)) {
  std::vector<std::uint8_t> floats(2 * halves.size());
  for (std::size_t i = 0; i < halves.size(); i += 2) {
    std::uint16_t half = 0;
    std::memcpy(&half, halves.data() + i, sizeof half);
    const float value = convert(half);
    std::memcpy(floats.data() + 2 * i, &value, sizeof value);
  }
  return floats;
}

// A file that is read from front to back; each part is checked against the size of the file before it is read.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (!std::filesystem::exists(status)) fail("no such file");
    if (!std::filesystem::is_regular_file(status)) fail("it is no regular file");
    left_ = std::filesystem::file_size(path, error);
    if (error) fail(error.message());
    file_.open(path, std::ios::binary);
    if (!file_) fail("cannot be opened: ", std::strerror(errno));
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(ErrorKind::data, join(printable(path_), ": ", parts...));
  }

  std::uint64_t left() const { return left_; }

  void read(void* to, std::size_t count) {
    if (count > left_ || !file_.read(static_cast<char*>(to), static_cast<std::streamsize>(count)))
      fail("damaged: cut short while it was read");
    left_ -= count;
  }

 private:
  std::string path_;
  std::ifstream file_;
  std::uint64_t left_ = 0;
};

}  // namespace

HostArray to_host(Stream& stream, const Tensor& tensor) {
  HostArray array{tensor.type(), tensor.shape(), std::vector<std::uint8_t>(tensor.bytes())};
  const void* from = array.type == DType::f32 ? static_cast<const void*>(tensor.read<float>())
                                              : static_cast<const void*>(tensor.read<std::int32_t>());
  stream.copy(array.bytes.data(), from, array.bytes.size());
  stream.synchronize();
  return array;
}

Tensor to_tensor(Stream& stream, const HostArray& array) {
  Tensor tensor(stream, array.shape, array.type);
  void* to = array.type == DType::f32 ? static_cast<void*>(tensor.write<float>())
                                      : static_cast<void*>(tensor.write<std::int32_t>());
  stream.copy(to, array.bytes.data(), array.bytes.size());
  stream.synchronize();  // the array may go before the stream gets there
  return tensor;
}

SafeTensors read_safetensors(const std::string& path) {
  Reader reader(path);
  const std::string other_kind = kind_of_file(read_first_bytes(path, bytes_of_kind), FileUse::weights);
  if (!other_kind.empty()) reader.fail("not a safetensors file but ", other_kind);
  const std::uint64_t file_bytes = reader.left();
  if (file_bytes < 8) reader.fail("damaged: ", file_bytes, " bytes are too few for a safetensors file");
  std::uint64_t header_bytes = 0;
  reader.read(&header_bytes, 8);
  if (header_bytes > most_header_bytes)
    reader.fail("not a safetensors file, or damaged: its header would take ", header_bytes, " bytes; at most ",
                most_header_bytes, " are read");
  if (header_bytes > reader.left())
    reader.fail("damaged: its header takes ", header_bytes, " bytes, file has ", reader.left(), " (cut short)");
  std::string text(header_bytes, '\0');
  reader.read(text.data(), text.size());

  SafeTensorsHeader header = parse_header(text, path);
  check_layout(header, reader.left(), path);
  SafeTensors contents{{}, std::move(header.metadata)};
  for (SafeTensorsHeader::Entry& entry : header.entries) {
    std::vector<std::uint8_t> bytes(entry.end - entry.begin);
    reader.read(bytes.data(), bytes.size());
    if (entry.stored == Stored::passed_over) continue;
    if (entry.stored == Stored::f16) bytes = as_floats(bytes, from_half);
    if (entry.stored == Stored::bf16) bytes = as_floats(bytes, from_bfloat16);
    const DType type = entry.stored == Stored::i32 ? DType::i32 : DType::f32;
    contents.arrays.emplace(std::move(entry.name), HostArray{type, std::move(entry.shape), std::move(bytes)});
  }
  verify_checksums(contents, path);
  return contents;
}

std::string write_safetensors(const std::string& path, const SafeTensors& contents) {
  const Metadata metadata = with_checksums(contents.arrays, contents.metadata);
  const std::string header = format_header(contents.arrays, metadata);
  const std::uint64_t header_bytes = header.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&header_bytes), 8}, header};
  for (const auto& [name, array] : contents.arrays)
    parts.emplace_back(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
  write_file_atomically(path, parts);
  return metadata.at(std::string(checksum_key));
}

}  // namespace twiddle
