#pragma once
#include <cstdint>
#include <span>

namespace twiddle {

// False where a JPEG holds a Huffman table of more than 256 codes: stb versions before 2023 write past their tables
// then. True for anything that is no JPEG, or is damaged in another way.
bool huffman_tables_fit(std::span<const std::uint8_t> file);

}  // namespace twiddle
