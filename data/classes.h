#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace twiddle {

// "0", "1", ...: the names of classes that have none.
std::vector<std::string> numbered_classes(std::int64_t count);

// Class names as files, folders and configs have them, fit to be shown: from here on they are text.
std::vector<std::string> printable_classes(std::vector<std::string> names);

}  // namespace twiddle
