#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/tensor.h"
#include "models/checkpoints/safetensors.h"

namespace twiddle {

// What a safetensors file says about itself before its bytes: 8 bytes of header length, a JSON object, the bytes.
struct SafeTensorsHeader {
  struct Entry {
    std::string name;
    DType type = DType::f32;  // in the file
    bool skipped = false;     // the batch counter of PyTorch's batch norm (I64), which is not used
    Shape shape;
    std::uint64_t begin = 0, end = 0;  // counted from the end of the header
  };
  std::vector<Entry> entries;  // by offset once laid out
  Metadata metadata;
};

// Headers of real files have about 100 bytes per tensor: a few MiB for the largest language models. Reading a header
// needs at most about ten times its size.
constexpr std::uint64_t most_header_bytes = 16u << 20;

const char* safetensors_name(DType type);  // "BF16"

// Reads the JSON; `path` is named in errors. The text may come from anyone: it is read entry by entry, and the first
// thing that does not belong into such a header stops it.
SafeTensorsHeader parse_header(const std::string& text, const std::string& path);

// Sorts the entries by offset and checks that they cover `available` bytes once each, without overlap or gap.
void check_layout(SafeTensorsHeader& header, std::uint64_t available, const std::string& path);

// Returns the names in the order in which a file stores the arrays: by name, those with elements of 4 bytes first. So
// all elements are aligned, which some Python loaders require.
std::vector<std::string> order_in_file(const ArrayTable& arrays);

// The header of a file that holds these arrays in that order, padded with spaces to whole 8 bytes.
std::string format_header(const ArrayTable& arrays, const Metadata& metadata);

}  // namespace twiddle
