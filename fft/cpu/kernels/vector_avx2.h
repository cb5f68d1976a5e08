#pragma once
#include <immintrin.h>

#include "fft/cpu/kernels/vector.h"

namespace twiddle {
namespace {

template <>
struct Special<8> {
  static __m256i first(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Floats<8> load_first(const float* from, int count) { return _mm256_maskload_ps(from, first(count)); }
  static void store_first(float* to, Floats<8> value, int count) { _mm256_maskstore_ps(to, first(count), value); }
  static void stream(float* to, Floats<8> value) { _mm256_stream_ps(to, value); }
  static void finish_streams() { _mm_sfence(); }
};

}  // namespace
}  // namespace twiddle
