#pragma once
#include <memory>
#include <string>
#include <vector>

namespace twiddle {

// Where configuration was read from: a file, or a command-line override.
struct SourceText {
  std::string name;
  std::vector<std::string> lines;
};

// A place in a source; line and column count from 1, length in characters. Line 0: the source as a whole.
struct Place {
  std::shared_ptr<const SourceText> source;
  int line = 0, column = 0, length = 1;
};
std::string to_string(const Place& place);  // "models/digits.yaml:14:5"

}  // namespace twiddle
