#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace twiddle {

// What a file is read for: it decides how a file of another kind can be made readable.
enum class FileUse : std::uint8_t { image, dataset, weights };

constexpr std::size_t bytes_of_kind = 512;  // as many first bytes of a file show its kind

// What a file is by its first bytes, and how to make it readable: "a WebP image; convert it to PNG or JPEG". Empty if
// they show no known kind, or if weights are read and it has some. Plain text, such as an image list, is no kind.
std::string kind_of_file(std::span<const std::uint8_t> first_bytes, FileUse use);

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view text);

}  // namespace twiddle
