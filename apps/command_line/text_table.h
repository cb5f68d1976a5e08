#pragma once
#include <string>
#include <vector>

namespace twiddle {

// Rows of text in columns: numbers are right-aligned, all else is left-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string text() const;  // one line per row

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string format_duration(double seconds);  // "0:06", "1:02:03"

}  // namespace twiddle
