#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace twiddle {

// "0", "1", ...: the names of classes that have none.
std::vector<std::string> numbered_classes(std::int64_t count);

}  // namespace twiddle
