#pragma once
#include <cmath>
#include <cstdint>
#include <functional>

namespace twiddle {

// Factor for an operand's value, by line (row of A or column of B) and k.
using Magnitude = std::function<double(std::int64_t line, std::int64_t k)>;

inline double same_size(std::int64_t, std::int64_t) {
  return 1;
}
// Six decades in shuffled order.
inline double decades(std::int64_t i) {
  return std::pow(10.0, static_cast<double>(i * 29 % 64) * 6 / 64 - 3);
}

}  // namespace twiddle
