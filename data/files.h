#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace twiddle {

// The contents of a regular file; throws an Error of kind data that names the file and the reason. Devices and pipes,
// of which a read may never end, are refused.
std::vector<std::uint8_t> read_bytes(const std::string& path);

// The first of them, or all where there are fewer.
std::vector<std::uint8_t> read_first_bytes(const std::string& path, std::size_t most);

// Bytes of a regular file, without opening it; throws the same errors.
std::uint64_t size_of_file(const std::string& path);

constexpr const char* blanks = " \t\r\n\v\f";
std::string_view trimmed(std::string_view text);  // without the blanks at its ends

// The lines of a text file's contents, trimmed and without a byte-order mark.
std::vector<std::string_view> lines_of(std::span<const std::uint8_t> contents);

}  // namespace twiddle
