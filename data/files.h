#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace twiddle {

// The contents of a regular file; throws an Error of kind data that names the file and the reason. Devices and pipes,
// of which a read may never end, are refused.
std::vector<std::uint8_t> read_bytes(const std::string& path);

// The first of them, or all where there are fewer.
std::vector<std::uint8_t> read_first_bytes(const std::string& path, std::size_t most);

// Bytes of a regular file, without opening it; throws likewise.
std::uint64_t size_of_file(const std::string& path);

}  // namespace twiddle
