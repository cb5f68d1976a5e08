#pragma once
#include "framework/for_each.h"

namespace twiddle {

// Which windows of one axis hold a place: a GPU's pooling gathers over them, with no two threads adding to one place.
struct CoveringWindows {
  std::int64_t kernel, pad, windows;
  Divisor stride;

  struct Range {
    std::int64_t begin, end;
  };
  TWIDDLE_HD Range at(std::int64_t place) const {
    const std::int64_t padded = place + pad, past = stride.quotient(padded) + 1;
    const std::int64_t begin = padded < kernel ? 0 : stride.quotient(padded - kernel) + 1;
    return {begin, past < windows ? past : windows};
  }
};

}  // namespace twiddle
