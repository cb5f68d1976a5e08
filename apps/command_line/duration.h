#pragma once
#include <string>

namespace twiddle {

std::string format_duration(double seconds);  // "0:06", "1:02:03"

}  // namespace twiddle
