#include "apps/command_line/validators.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdlib>

namespace twiddle {

Validator whole_number_between(long long least, long long most) {
  return [=](const std::string& text) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    const bool ok = !text.empty() && *end == '\0' && errno == 0 && value >= least && value <= most;
    return ok ? std::string() : fmt::format("a whole number from {} to {} is needed, found '{}'", least, most, text);
  };
}

Validator number_between(double least, double most) {
  return [=](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool ok = !text.empty() && *end == '\0' && value >= least && value <= most;
    return ok ? std::string() : fmt::format("a number from {} to {} is needed, found '{}'", least, most, text);
  };
}

}  // namespace twiddle
