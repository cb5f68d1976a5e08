#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace twiddle {

// Escapes text so that a page shows it literally.
std::string escape_html(const std::string& text);

// One row of a table; `cell` is "td" or "th".
std::string html_row(const char* cell, const std::vector<std::string>& cells);

std::string base64(const std::vector<std::uint8_t>& bytes);  // RFC 4648, padded

}  // namespace twiddle
