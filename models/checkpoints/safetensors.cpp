#include "models/checkpoints/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "data/files.h"
#include "data/images/file_kind.h"
#include "framework/error.h"
#include "framework/printable.h"
#include "models/checkpoints/checksum.h"
#include "models/checkpoints/safetensors_header.h"

namespace twiddle {

static_assert(std::endian::native == std::endian::little, "safetensors files are little endian, and so are our arrays");

namespace {

constexpr std::string_view checksum_key = "xxh3";
constexpr std::size_t part_bytes = std::size_t(4) << 20;  // what is read of a file or a GPU at once

std::string array_key(const std::string& name) {
  return join(checksum_key, ":", name);
}

bool is_checksum(std::string_view key) {
  return key.starts_with(checksum_key);
}

// Names, types, shapes and metadata, the arrays' own checksums among it: all of a file but its layout.
std::string contents_hash(const ArrayTable& arrays, const Metadata& metadata) {
  std::string text;
  const auto append = [&text](std::string_view part) { text += join(part.size(), ":", part); };
  for (const auto& [name, array] : arrays) {
    append(name);
    append(safetensors_name(array.type));
    append(to_string(array.shape));
  }
  for (const auto& [key, value] : metadata) {
    if (key == checksum_key) continue;
    append(key);
    append(value);
  }
  Checksum sum;
  sum.add(text);
  return sum.text();
}

Metadata with_checksums(const ArraySource& contents) {
  Metadata metadata = contents.metadata;
  std::erase_if(metadata, [](const auto& entry) { return is_checksum(entry.first); });
  for (const auto& [name, array] : contents.arrays) {
    Checksum sum;
    contents.read(name, [&sum](std::string_view part) { sum.add(part); });
    metadata[array_key(name)] = sum.text();
  }
  metadata[std::string(checksum_key)] = contents_hash(contents.arrays, metadata);
  return metadata;
}

// A file from elsewhere may have no checksums at all; one that has any must have them all, and right.
bool has_checksums(const Metadata& metadata) {
  const auto first = metadata.lower_bound(std::string(checksum_key));
  return first != metadata.end() && is_checksum(first->first);
}

void verify_checksum(const Metadata& metadata, const std::string& key, const std::string& actual,
                     const std::string& what, const std::string& path) {
  const auto kept = metadata.find(key);
  if (kept == metadata.end())
    throw Error(ErrorKind::data, join(printable(path), ": damaged: ", what, " has lost its checksum"));
  if (kept->second != actual)
    throw Error(ErrorKind::data, join(printable(path), ": damaged: ", what, " has checksum ", actual,
                                      ", the file says ", shown(kept->second)));
}

template <class T>
std::string as_floats(std::string_view elements) {
  std::string floats(elements.size() / sizeof(T) * sizeof(float), '\0');
  for (std::size_t i = 0; i < elements.size() / sizeof(T); ++i) {
    T element;
    std::memcpy(&element, elements.data() + i * sizeof(T), sizeof element);
    const float value = to_float(element);
    std::memcpy(floats.data() + i * sizeof value, &value, sizeof value);
  }
  return floats;
}

// A file whose parts are checked against its size before they are read.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), size_(size_of_file(path)), file_(path, std::ios::binary) {
    if (!file_) fail("cannot be opened: ", std::strerror(errno));
  }

  template <class... Parts>
  [[noreturn]] void fail(const Parts&... parts) const {
    throw Error(ErrorKind::data, join(printable(path_), ": ", parts...));
  }

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }

  void read(std::uint64_t from, void* to, std::size_t count) {
    if (from > size_ || count > size_ - from || !file_.seekg(static_cast<std::streamoff>(from)) ||
        !file_.read(static_cast<char*>(to), static_cast<std::streamsize>(count)))
      fail("damaged: truncated while it was read");
  }

 private:
  std::string path_;
  std::uint64_t size_;
  std::ifstream file_;
};

// The arrays of a file whose header was read.
struct OpenFile {
  Reader reader;
  std::map<std::string, SafeTensorsHeader::Entry> entries;
  std::uint64_t data_begin;  // where the header ends
  Metadata metadata;

  void read(const std::string& name, const BytesVisitor& visit) {
    const SafeTensorsHeader::Entry& entry = entries.at(name);
    Checksum sum;
    std::string part;
    for (std::uint64_t begin = entry.begin; begin < entry.end; begin += part.size()) {
      part.resize(std::min<std::uint64_t>(part_bytes, entry.end - begin));
      reader.read(data_begin + begin, part.data(), part.size());
      sum.add(part);
      if (entry.type == DType::f16)
        visit(as_floats<Half>(part));
      else if (entry.type == DType::bf16)
        visit(as_floats<Bf16>(part));
      else
        visit(part);
    }
    if (has_checksums(metadata))
      verify_checksum(metadata, array_key(name), sum.text(), join("'", name, "'"), reader.path());
  }
};

const void* bytes_of(const Tensor& tensor) {
  if (tensor.type() == DType::i32) return tensor.read<std::int32_t>();
  return with_type(tensor.type(), [&](auto type) -> const void* { return tensor.read<decltype(type)>(); });
}

void* bytes_of(Tensor& tensor) {
  if (tensor.type() == DType::i32) return tensor.write<std::int32_t>();
  return with_type(tensor.type(), [&](auto type) -> void* { return tensor.write<decltype(type)>(); });
}

}  // namespace

HostArray to_host(Stream& stream, const Tensor& tensor) {
  HostArray array{tensor.type(), tensor.shape(), std::vector<std::uint8_t>(tensor.bytes())};
  stream.copy(array.bytes.data(), bytes_of(tensor), array.bytes.size());
  stream.synchronize();
  return array;
}

Tensor to_tensor(Stream& stream, const HostArray& array) {
  Tensor tensor(stream, array.shape, array.type);
  stream.copy(bytes_of(tensor), array.bytes.data(), array.bytes.size());
  stream.synchronize();  // the array may go before the stream gets there
  return tensor;
}

Tensor read_tensor(Stream& stream, const ArraySource& source, const std::string& name) {
  const ArrayFacts& facts = source.arrays.at(name);
  Tensor tensor(stream, facts.shape, facts.type);
  char* to = static_cast<char*>(bytes_of(tensor));
  source.read(name, [&](std::string_view part) {
    stream.copy(to, part.data(), part.size());
    stream.synchronize();  // the next part may take this one's place
    to += part.size();
  });
  return tensor;
}

ArraySource source_of(SafeTensors contents) {
  ArraySource source{{}, std::move(contents.metadata), {}};
  for (const auto& [name, array] : contents.arrays) {
    source.arrays[name] = {array.type, array.shape};
    require(array.bytes.size() == source.arrays[name].bytes(), "'", name, "' has ", array.bytes.size(),
            " bytes, its shape ", to_string(array.shape), " takes another number");
  }
  source.read = [arrays = std::make_shared<const std::map<std::string, HostArray>>(std::move(contents.arrays))](
                    const std::string& name, const BytesVisitor& visit) {
    const std::vector<std::uint8_t>& bytes = arrays->at(name).bytes;
    visit({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  };
  return source;
}

ArraySource source_of(Stream& stream, std::map<std::string, Tensor> tensors, Metadata metadata) {
  ArraySource source{{}, std::move(metadata), {}};
  for (const auto& [name, tensor] : tensors) source.arrays[name] = {tensor.type(), tensor.shape()};
  const auto kept = std::make_shared<const std::map<std::string, Tensor>>(std::move(tensors));
  if (stream.device().kind == Device::Kind::cpu) {
    source.read = [kept](const std::string& name, const BytesVisitor& visit) {
      const Tensor& tensor = kept->at(name);
      visit({static_cast<const char*>(bytes_of(tensor)), tensor.bytes()});
    };
    return source;
  }
  source.read = [kept, &stream, buffer = stream.allocate_host(part_bytes)](const std::string& name,
                                                                           const BytesVisitor& visit) {
    const Tensor& tensor = kept->at(name);
    const char* const from = static_cast<const char*>(bytes_of(tensor));
    for (std::size_t begin = 0; begin < tensor.bytes(); begin += part_bytes) {
      const std::size_t count = std::min(part_bytes, tensor.bytes() - begin);
      stream.copy(buffer.get(), from + begin, count);
      stream.synchronize();
      visit({static_cast<const char*>(buffer.get()), count});
    }
  };
  return source;
}

ArraySource open_safetensors(const std::string& path) {
  Reader reader(path);
  const std::string other_kind = kind_of_file(read_first_bytes(path, bytes_of_kind), FileUse::weights);
  if (!other_kind.empty()) reader.fail("not a safetensors file but ", other_kind);
  const std::uint64_t file_bytes = reader.size();
  if (file_bytes < 8) reader.fail("damaged: ", file_bytes, " bytes are too few for a safetensors file");
  std::uint64_t header_bytes = 0;
  reader.read(0, &header_bytes, 8);
  if (header_bytes > most_header_bytes)
    reader.fail("not a safetensors file, or damaged: its header would take ", header_bytes, " bytes; at most ",
                most_header_bytes, " are read");
  if (header_bytes > file_bytes - 8)
    reader.fail("damaged: its header takes ", header_bytes, " bytes, file has ", file_bytes - 8, " (truncated)");
  std::string text(header_bytes, '\0');
  reader.read(8, text.data(), text.size());

  SafeTensorsHeader header = parse_header(text, path);
  check_layout(header, file_bytes - 8 - header_bytes, path);
  ArraySource source{{}, header.metadata, {}};
  ArrayTable stored;
  const auto file =
      std::make_shared<OpenFile>(OpenFile{std::move(reader), {}, 8 + header_bytes, std::move(header.metadata)});
  for (SafeTensorsHeader::Entry& entry : header.entries) {
    if (entry.skipped) continue;
    stored[entry.name] = {entry.type, entry.shape};
    source.arrays[entry.name] = {entry.type == DType::i32 ? DType::i32 : DType::f32, entry.shape};
    file->entries.emplace(entry.name, std::move(entry));
  }
  if (has_checksums(file->metadata))
    verify_checksum(file->metadata, std::string(checksum_key), contents_hash(stored, file->metadata), "the header",
                    path);
  source.read = [file](const std::string& name, const BytesVisitor& visit) { file->read(name, visit); };
  return source;
}

void verify_arrays(const ArraySource& source) {
  for (const auto& [name, array] : source.arrays) source.read(name, [](std::string_view) {});
}

SafeTensors read_safetensors(const std::string& path) {
  const ArraySource source = open_safetensors(path);
  SafeTensors contents{{}, source.metadata};
  for (const auto& [name, facts] : source.arrays) {
    HostArray& array = contents.arrays[name] = {facts.type, facts.shape, {}};
    array.bytes.reserve(facts.bytes());
    source.read(name,
                [&array](std::string_view part) { array.bytes.insert(array.bytes.end(), part.begin(), part.end()); });
  }
  return contents;
}

std::string write_safetensors(const std::string& path, const ArraySource& contents) {
  const Metadata metadata = with_checksums(contents);
  const std::string header = format_header(contents.arrays, metadata);
  write_file_atomically(path, [&](const BytesVisitor& write) {
    const std::uint64_t header_bytes = header.size();
    write({reinterpret_cast<const char*>(&header_bytes), 8});
    write(header);
    for (const std::string& name : order_in_file(contents.arrays)) contents.read(name, write);
  });
  return metadata.at(std::string(checksum_key));
}

std::string write_safetensors(const std::string& path, SafeTensors contents) {
  return write_safetensors(path, source_of(std::move(contents)));
}

}  // namespace twiddle
