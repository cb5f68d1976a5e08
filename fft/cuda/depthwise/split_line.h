#pragma once
#include "fft/cuda/device/register_fft.h"

// The transform of one line, a row or a column of N complex points, by S threads: each has N / S of its bins in
// registers. One thread has registers for about 64 points. Two threads share a line of twice the length by decimation
// in frequency (Gentleman, Sande, 1966): the even bins are the transform of x[j] + x[j + N/2], and the odd ones that of
// (x[j] - x[j + N/2]) e^(-2 pi i j / N). Each thread thus reads the full line and needs nothing else of the other.
namespace twiddle::small_fft {

template <int N, int S>
struct SplitLine {
  static_assert(S == 1 || (S == 2 && N % 4 == 0));
  static constexpr int points = N / S;  // in a thread's registers: v[m] is bin S * m + part

  static constexpr int bin(int m, int part) { return S * m + part; }
  // Where a thread has the bin of the opposite frequency, N - bin: it always has both.
  TWIDDLE_HD static constexpr int opposite(int m, int part) {
    return part == 0 ? (points - m) % points : points - 1 - m;
  }

  // What v[j] becomes of points j and j + points: the sum or the difference, and then turned.
  TWIDDLE_HD static Complex fold(Complex near, Complex far, float sign) {
    return {near.re + sign * far.re, near.im + sign * far.im};
  }
  TWIDDLE_HD static float sign_of(int part) { return part == 0 ? 1.f : -1.f; }
  TWIDDLE_HD static void turn_folded(Complex (&v)[points], int part) {
    if (part == 1) unrolled<points>([&](auto j) { v[j] = detail::times_root<-decltype(j)::value, N>(v[j]); });
  }

  // After the inverse transform of its bins a thread has its part of two points, J and J + points: the sum of both
  // threads' parts is one point, their difference the other.
  TWIDDLE_HD static void turn_shares(Complex (&v)[points], int part) {
    if (part == 1) unrolled<points>([&](auto j) { v[j] = detail::times_root<decltype(j)::value, N>(v[j]); });
  }
};

}  // namespace twiddle::small_fft
