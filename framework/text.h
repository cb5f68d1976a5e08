#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace twiddle {

// The known name nearest to what was typed, where one is near enough to be meant.
std::optional<std::string> nearest_name(std::string_view typed, const std::vector<std::string>& known);

// "unknown layer 'rellu'; did you mean 'relu'?" or "...; known are: a, b, c".
std::string unknown_name(std::string_view what, std::string_view typed, const std::vector<std::string>& known);

std::string join_names(const std::vector<std::string>& names, std::string_view separator = ", ");
std::string first_line(const std::string& text);                        // without its end
std::string format_bytes(std::uint64_t bytes);                          // "1.44 GiB"
std::string format_count(std::int64_t count);                           // "61,100,840"
std::string format_count(std::int64_t count, const std::string& noun);  // "1 class", "2 classes", "9,000 images"
std::optional<std::uint64_t> parse_bytes(
    std::string_view text);                       // "512MiB", "2GiB", "1000": bytes; nullopt if it is not a size
std::string format_sides(int height, int width);  // "4" where both agree, else "4x2"
std::string format_number(double value);          // shortest text that reads back as the same double

}  // namespace twiddle
