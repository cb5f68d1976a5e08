#include "apps/report/html.h"

#include <fmt/core.h>

#include <map>

#include "framework/printable.h"

namespace twiddle {

std::string escape_html(const std::string& text) {
  static const std::map<char, std::string> names{
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string escaped;
  for (const char c : printable_lines(text)) {
    const auto name = names.find(c);
    escaped += name == names.end() ? std::string(1, c) : name->second;
  }
  return escaped;
}

std::string html_row(const char* cell, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (const std::string& text : cells) html += fmt::format("<{0}>{1}</{0}>", cell, escape_html(text));
  return html + "</tr>\n";
}

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const std::uint32_t three =
        static_cast<std::uint32_t>(bytes[i]) << 16 | (left > 1 ? bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
    text += digits[three >> 18];
    text += digits[three >> 12 & 63];
    text += left > 1 ? digits[three >> 6 & 63] : '=';
    text += left > 2 ? digits[three & 63] : '=';
  }
  return text;
}

}  // namespace twiddle
