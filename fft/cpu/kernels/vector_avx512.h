#pragma once
#include <immintrin.h>

#include "fft/cpu/kernels/vector.h"

namespace twiddle {
namespace {

template <>
struct Special<16> {
  static __mmask16 first(int count) { return static_cast<__mmask16>((1u << count) - 1); }
  static Floats<16> load_first(const float* from, int count) { return _mm512_maskz_loadu_ps(first(count), from); }
  static void store_first(float* to, Floats<16> value, int count) { _mm512_mask_storeu_ps(to, first(count), value); }
  static void stream(float* to, Floats<16> value) { _mm512_stream_ps(to, value); }
  static void finish_streams() { _mm_sfence(); }
};

}  // namespace
}  // namespace twiddle
