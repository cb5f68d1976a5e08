#include "apps/report/html.h"

#include <fmt/core.h>

#include "framework/printable.h"

namespace twiddle {

std::string escape_html(const std::string& text) {
  std::string escaped;
  for (const char c : printable_lines(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string html_row(const char* cell, const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (const std::string& text : cells) html += fmt::format("<{0}>{1}</{0}>", cell, escape_html(text));
  return html + "</tr>\n";
}

}  // namespace twiddle
