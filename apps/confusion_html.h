#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace twiddle {

// What was taken for what: of few classes the whole matrix, of many the pairs most often confused and the classes least
// often known. `confusion`: [actual * classes + predicted].
std::string confusion_html(const std::vector<std::string>& classes, const std::vector<std::int64_t>& confusion);

}  // namespace twiddle
