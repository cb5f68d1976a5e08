#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/atomic_file.h"
#include "framework/tensor.h"

namespace twiddle {

// Arrays by name in host memory, as a safetensors file holds them.
struct HostArray {
  DType type = DType::f32;
  Shape shape;
  std::vector<std::uint8_t> bytes;  // little endian
};
struct SafeTensors {
  std::map<std::string, HostArray> arrays;
  std::map<std::string, std::string> metadata;  // __metadata__
};

HostArray to_host(Stream& stream, const Tensor& tensor);  // waits for the stream
Tensor to_tensor(Stream& stream, const HostArray& array);

// Reads a whole file; an Error of kind data names the file and what is wrong with it (cut short, header too large,
// overlapping or missing bytes, wrong checksum ...). Halves, F16 and BF16, become F32. Nothing is allocated on the word
// of a header before it was held against the file's size.
SafeTensors read_safetensors(const std::string& path);

// Writes the file whole or not at all (framework/atomic_file.h). An XXH3 checksum of every array ("xxh3:NAME") and one
// of all the rest ("xxh3") go into the metadata; the latter stands for the whole contents and is returned.
std::string write_safetensors(const std::string& path, const SafeTensors& contents);

}  // namespace twiddle
