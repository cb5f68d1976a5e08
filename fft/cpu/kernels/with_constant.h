#pragma once

namespace twiddle {
namespace {

// run.operator()<value>() with `value`, from 1 to `most`, as a compile-time constant.
template <int most, class Run>
[[gnu::always_inline]] inline void with_constant(int value, const Run& run) {
  if constexpr (most > 1)
    if (value < most) return with_constant<most - 1>(value, run);
  run.template operator()<most>();
}

}  // namespace
}  // namespace twiddle
