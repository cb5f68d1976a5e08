#include "apps/command_line/text_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>

namespace twiddle {
namespace {

// Counts characters, not bytes: class names may contain any UTF-8.
std::size_t width_of(const std::string& cell) {
  return static_cast<std::size_t>(std::count_if(cell.begin(), cell.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool is_number_like(const std::string& cell) {
  return cell.empty() || cell == "-" || std::isdigit(static_cast<unsigned char>(cell[0])) != 0 || cell[0] == '<';
}

}  // namespace

std::string TextTable::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  std::vector<bool> numbers(widths.size(), true);
  for (const auto& row : rows_)
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
      if (&row != &rows_.front() && !is_number_like(row[column])) numbers[column] = false;
    }
  std::string all;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      const std::string gap(widths[column] - width_of(row[column]), ' ');
      if (column > 0) line += "  ";
      line += numbers[column] ? gap + row[column] : row[column] + gap;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    all += line + "\n";
  }
  return all;
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "-";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace twiddle
