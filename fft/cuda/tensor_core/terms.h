#pragma once
#include <cstdint>

#include "framework/host_device.h"

namespace twiddle::tensor_core {

// One product of a step: sums[out] += sign * plane a of A * plane b of B.
struct Term {
  std::int8_t a, b, out, sign;
};

template <int Count>
struct Terms {
  static constexpr int count = Count;
  Term of[Count];
  // No earlier term has the same sum.
  TWIDDLE_HD constexpr bool is_first(int i) const {
    for (int earlier = 0; earlier < i; ++earlier)
      if (of[earlier].out == of[i].out) return false;
    return true;
  }
};

// A number is the sum of `Parts` 16-bit numbers, the high one and the low one. The product of the low ones is left out,
// and small products come first. Planes of a real matrix: high, low.
template <int Parts>
constexpr Terms<2 * Parts - 1> real_terms() {
  if constexpr (Parts == 1)
    return {{{0, 0, 0, 1}}};
  else
    return {{{1, 0, 0, 1}, {0, 1, 0, 1}, {0, 0, 0, 1}}};
}

// Planes of a complex matrix: re and im of the high parts, re and im of the low ones. Sums: re, im. A factor with
// sign -1 is conjugated.
template <int Parts>
constexpr Terms<4 * (2 * Parts - 1)> complex_terms(int sign_a, int sign_b) {
  Terms<4 * (2 * Parts - 1)> terms = {};
  int count = 0;
  constexpr auto parts = real_terms<Parts>();
  for (const Term& part : parts.of) {
    const auto a = static_cast<std::int8_t>(2 * part.a), b = static_cast<std::int8_t>(2 * part.b);
    const auto a_im = static_cast<std::int8_t>(a + 1), b_im = static_cast<std::int8_t>(b + 1);
    terms.of[count++] = {a, b, 0, 1};
    terms.of[count++] = {a_im, b, 1, static_cast<std::int8_t>(sign_a)};
    terms.of[count++] = {a_im, b_im, 0, static_cast<std::int8_t>(-sign_a * sign_b)};
    terms.of[count++] = {a, b_im, 1, static_cast<std::int8_t>(sign_b)};
  }
  return terms;
}

}  // namespace twiddle::tensor_core
