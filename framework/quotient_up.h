#pragma once
#include <cstdint>

namespace twiddle {

// count / each, the rest counted as a whole one; neither is negative.
constexpr std::int64_t quotient_up(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

}  // namespace twiddle
