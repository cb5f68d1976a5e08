#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/dataset.h"

namespace twiddle {

constexpr std::int64_t most_classes = 1 << 20;

// "0", "1", ...: the names of classes that have none.
std::vector<std::string> numbered_classes(std::int64_t count);

// Class names as files, folders and configs have them, fit to be shown: from here on they are text.
std::vector<std::string> printable_classes(std::vector<std::string> names);

// The option `classes` of a dataset: a list of names, or a text file with one name per line. No name may come twice.
class ClassNames {
 public:
  ClassNames() = default;
  explicit ClassNames(Params& params);                           // reads no file
  std::vector<std::string> read(const DatasetSite& site) const;  // fit to be shown; empty: the config names none

 private:
  std::vector<std::string> names_;
  std::string file_;
};

}  // namespace twiddle
