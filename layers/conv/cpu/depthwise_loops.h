#pragma once
#include <algorithm>
#include <cstdint>

#include "fft/cpu/kernels/vector.h"
#include "layers/conv/cpu/depthwise_kernels.h"

// Compiled once for each instruction set, in an unnamed namespace for the same reason as fft/cpu/kernels/vector.h.
namespace twiddle {
namespace {

// Sums in registers: enough that an addition need not wait for the one before it, and few enough for sixteen registers.
constexpr int vectors_at_once = 8, taps_at_once = 10;
static_assert(vectors_at_once * 16 <= depthwise_slack);

template <int lanes, int vectors>
[[gnu::always_inline]] inline void sum_block(const TapSums& s, std::int64_t begin) {
  Floats<lanes> sums[vectors] = {};
  for (int tap = 0; tap < s.taps; ++tap) {
    const Floats<lanes> weight = Floats<lanes>{} + s.weights[tap];
    const float* const from = s.in + begin + s.offsets[tap];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[v] += weight * load<lanes>(from + v * lanes);
  }
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) store<lanes>(s.out + begin + v * lanes, sums[v]);
}

template <int lanes>
void sum_taps(const TapSums& s) {
  constexpr int block = vectors_at_once * lanes, few = 2 * lanes;
  std::int64_t begin = 0;
  for (; begin + block - few < s.count; begin += block) sum_block<lanes, vectors_at_once>(s, begin);
  for (; begin < s.count; begin += few) sum_block<lanes, 2>(s, begin);
}

// Runs short enough to stay in the first cache, and for sums in float to lose nothing.
constexpr std::int64_t product_run = 2048;

template <int lanes>
void multiply_taps(const TapProducts& p) {
  for (std::int64_t begin = 0; begin < p.count; begin += product_run) {
    const std::int64_t end = std::min(begin + product_run, p.count);
    for (int first = 0; first < p.taps; first += taps_at_once) {
      const int taps = std::min(taps_at_once, p.taps - first);
      const float* from[taps_at_once];  // past the last tap that one again
      for (int tap = 0; tap < taps_at_once; ++tap) from[tap] = p.in + p.offsets[first + std::min(tap, taps - 1)];
      Floats<lanes> sums[taps_at_once] = {};
      for (std::int64_t i = begin; i < end; i += lanes) {
        const Floats<lanes> gradient = load<lanes>(p.gradient + i);
#pragma GCC unroll 16
        for (int tap = 0; tap < taps_at_once; ++tap) sums[tap] += gradient * load<lanes>(from[tap] + i);
      }
      for (int tap = 0; tap < taps; ++tap) {
        float sum = 0;
        for (int lane = 0; lane < lanes; ++lane) sum += sums[tap][lane];
        p.sums[first + tap] += double(sum);
      }
    }
  }
}

template <int lanes>
DepthwiseKernels depthwise_kernels() {
  return {.sum_taps = sum_taps<lanes>, .multiply_taps = multiply_taps<lanes>};
}

}  // namespace
}  // namespace twiddle
