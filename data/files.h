#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace twiddle {

// The contents of a file; throws an Error of kind data that names the file and the system's reason.
std::vector<std::uint8_t> read_bytes(const std::string& path);

// Bytes of a file, without opening it; throws likewise.
std::uint64_t size_of_file(const std::string& path);

}  // namespace twiddle
