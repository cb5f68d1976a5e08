#pragma once
#include <cstdint>

namespace twiddle {

// count / each, the rest counted as a whole one; neither is negative.
constexpr std::int64_t quotient_up(std::int64_t count, std::int64_t each) {
  return (count + each - 1) / each;
}

// The least multiple of `step` that is not below the count.
template <class Integer>
constexpr Integer round_up(Integer count, Integer step) {
  return (count + step - 1) / step * step;
}

}  // namespace twiddle
