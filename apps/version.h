#pragma once
#include <string>

namespace twiddle {

std::string version();   // "0.1.0"
std::string compiler();  // "GCC 12.2.0"

}  // namespace twiddle
