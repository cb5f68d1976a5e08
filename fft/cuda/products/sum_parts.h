#pragma once
#include <cstdint>

#include "framework/for_each.h"

namespace twiddle::small_fft {

// C = (accumulate ? C : 0) + the sum of the parts' results, in their order.
template <class Number>
struct SumParts {
  const Number* results;
  Number* c;
  std::int64_t count, parts;
  bool accumulate;
  TWIDDLE_HD void operator()(std::int64_t i) const {
    Number sum = accumulate ? c[i] : Number{};
    for (std::int64_t part = 0; part < parts; ++part) sum = sum + results[part * count + i];
    c[i] = sum;
  }
};

}  // namespace twiddle::small_fft
