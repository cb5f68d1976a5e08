#pragma once
#include <cstdint>

#include "framework/host_device.h"

namespace twiddle {

// A number that many indices are divided by: a GPU takes about 80 instructions for a 64-bit division, and four for
// this. Indices below 2^31 are multiplied by a scaled inverse (Granlund, Montgomery, Division by Invariant Integers
// using Multiplication, 1994); larger ones are divided.
class Divisor {
 public:
  explicit Divisor(std::int64_t divisor) : divisor_(divisor) {
    if (divisor >= limit) return;  // 0 for all indices below the limit
    shift_ = 0;
    while ((std::int64_t(1) << shift_) < divisor) ++shift_;
    const auto above = static_cast<std::uint64_t>((std::int64_t(1) << shift_) - divisor);
    inverse_ = static_cast<std::uint32_t>((above << 32) / static_cast<std::uint64_t>(divisor) + 1);
  }

  TWIDDLE_HD std::int64_t value() const { return divisor_; }
  TWIDDLE_HD std::int64_t quotient(std::int64_t index) const {
    return index >= limit ? index / divisor_ : quotient32(static_cast<int>(index));
  }
  TWIDDLE_HD int quotient32(int index) const {
    const auto small = static_cast<std::uint32_t>(index);
    const auto high = static_cast<std::uint32_t>((std::uint64_t(small) * inverse_) >> 32);
    return static_cast<int>((high + small) >> shift_);
  }
  TWIDDLE_HD std::int64_t remainder(std::int64_t index) const { return index - quotient(index) * divisor_; }

 private:
  static constexpr std::int64_t limit = std::int64_t(1) << 31;
  std::int64_t divisor_;
  std::uint32_t inverse_ = 0, shift_ = 31;
};

}  // namespace twiddle
