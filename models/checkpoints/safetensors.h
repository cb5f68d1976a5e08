#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/atomic_file.h"
#include "framework/tensor.h"

namespace twiddle {

// What a file's header says of an array.
struct ArrayFacts {
  DType type = DType::f32;
  Shape shape;
  std::size_t bytes() const { return static_cast<std::size_t>(count_of(shape) * size_of(type)); }
};
using ArrayTable = std::map<std::string, ArrayFacts>;
using Metadata = std::map<std::string, std::string>;  // __metadata__

// Arrays by name in host memory, as a safetensors file holds them.
struct HostArray {
  DType type = DType::f32;
  Shape shape;
  std::vector<std::uint8_t> bytes;  // little endian
};
struct SafeTensors {
  std::map<std::string, HostArray> arrays;
  Metadata metadata;
};

// Arrays by name, each of which is read when it is needed: from a file, host memory or a device.
struct ArraySource {
  ArrayTable arrays;
  Metadata metadata;
  // Passes the bytes of an array, in order, in parts of a few MiB that end with a whole number, or in one part if they
  // are in host memory. Throws if the file is damaged there.
  std::function<void(const std::string& name, const BytesVisitor& visit)> read;
};

HostArray to_host(Stream& stream, const Tensor& tensor);  // waits for the stream
Tensor to_tensor(Stream& stream, const HostArray& array);
Tensor read_tensor(Stream& stream, const ArraySource& source, const std::string& name);

ArraySource source_of(SafeTensors contents);
// The stream is used as long as the source is. Waits for it.
ArraySource source_of(Stream& stream, std::map<std::string, Tensor> tensors, Metadata metadata);

// Reads and checks the header; an Error of kind data names the file and what is wrong with it (truncated, header too
// large, overlapping or missing bytes, wrong checksum ...). F16 and BF16 become F32. Sizes in the header are checked
// against the file's size before anything is allocated. Each array's checksum is verified when it is read.
ArraySource open_safetensors(const std::string& path);
void verify_arrays(const ArraySource& source);  // reads all, throws as `read` does

SafeTensors read_safetensors(const std::string& path);  // all of it

// Writes the file whole or not at all (framework/atomic_file.h), one array after the other from where it is. An XXH3
// checksum of every array ("xxh3:NAME") and one of all the rest ("xxh3") go into the metadata; the latter stands for
// the whole contents and is returned. Reads each array twice.
std::string write_safetensors(const std::string& path, const ArraySource& contents);
std::string write_safetensors(const std::string& path, SafeTensors contents);

}  // namespace twiddle
