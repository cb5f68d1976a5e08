#pragma once
#include "fft/cpu/kernels.h"
#include "fft/cpu/kernels/vector.h"
#include "fft/cpu/kernels/with_constant.h"

namespace twiddle {
namespace {

// cos and sin of 2 pi i / points, the parts of a twiddle factor.
template <int points>
struct Roots;
template <>
struct Roots<3> {
  static constexpr float cosine[3] = {1, -0.5f, -0.5f};
  static constexpr float sine[3] = {0, 0.866025403784438647f, -0.866025403784438647f};
};
template <>
struct Roots<5> {
  static constexpr float c1 = 0.309016994374947424f, c2 = -0.809016994374947424f;
  static constexpr float s1 = 0.951056516295153572f, s2 = 0.587785252292473129f;
  static constexpr float cosine[5] = {1, c1, c2, c2, c1};
  static constexpr float sine[5] = {0, s1, s2, -s2, -s1};
};
template <>
struct Roots<7> {
  static constexpr float c1 = 0.623489801858733531f, c2 = -0.222520933956314404f, c3 = -0.900968867902419126f;
  static constexpr float s1 = 0.781831482468029809f, s2 = 0.974927912181823607f, s3 = 0.433883739117558120f;
  static constexpr float cosine[7] = {1, c1, c2, c3, c3, c2, c1};
  static constexpr float sine[7] = {0, s1, s2, s3, -s3, -s2, -s1};
};
template <>
struct Roots<9> {
  static constexpr float cosine[5] = {1, 0.766044443118978035f, 0.173648177666930349f, -0.5f, -0.939692620785908384f};
  static constexpr float sine[5] = {0, 0.642787609686539326f, 0.984807753012208059f, 0.866025403784438647f,
                                    0.342020143325668733f};
};

constexpr float half_root = 0.707106781186547524f;

// a times -i
template <int lanes>
[[gnu::always_inline]] inline Complex<lanes> turned(const Complex<lanes>& a) {
  return {a.im, -a.re};
}

// a times (cosine - i sine)
template <int lanes>
[[gnu::always_inline]] inline Complex<lanes> rotated(const Complex<lanes>& a, float cosine, float sine) {
  return {a.re * cosine + a.im * sine, a.im * cosine - a.re * sine};
}

template <int points, int lanes>
[[gnu::always_inline]] inline void dft(Complex<lanes> (&x)[points]);

// Uses that the sums of x[j] and x[points - j] need only cosines, and their differences only sines.
template <int points, int lanes>
[[gnu::always_inline]] inline void odd_dft(Complex<lanes> (&x)[points]) {
  constexpr int half = points / 2;
  Complex<lanes> sum[half], difference[half];
  const Complex<lanes> first = x[0];
#pragma GCC unroll 16
  for (int j = 0; j < half; ++j) {
    sum[j] = x[1 + j] + x[points - 1 - j];
    difference[j] = x[1 + j] - x[points - 1 - j];
    x[0] = x[0] + sum[j];
  }
#pragma GCC unroll 16
  for (int k = 1; k <= half; ++k) {
    Complex<lanes> even = first;
    Complex<lanes> odd = {difference[0].re * Roots<points>::sine[k], difference[0].im * Roots<points>::sine[k]};
#pragma GCC unroll 16
    for (int j = 1; j <= half; ++j) {
      even.re += sum[j - 1].re * Roots<points>::cosine[j * k % points];
      even.im += sum[j - 1].im * Roots<points>::cosine[j * k % points];
      if (j == 1) continue;
      odd.re += difference[j - 1].re * Roots<points>::sine[j * k % points];
      odd.im += difference[j - 1].im * Roots<points>::sine[j * k % points];
    }
    x[k] = {even.re + odd.im, even.im - odd.re};
    x[points - k] = {even.re - odd.im, even.im + odd.re};
  }
}

// The prime-factor FFT (Good, Thomas): factors without a common divisor need no twiddle factors between them.
template <int a, int b, int lanes>
[[gnu::always_inline]] inline void coprime_dft(Complex<lanes> (&x)[a * b]) {
  Complex<lanes> table[a][b];
#pragma GCC unroll 16
  for (int i = 0; i < a; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < b; ++j) table[i][j] = x[(i * b + j * a) % (a * b)];
    dft<b, lanes>(table[i]);
  }
#pragma GCC unroll 16
  for (int j = 0; j < b; ++j) {
    Complex<lanes> column[a];
#pragma GCC unroll 16
    for (int i = 0; i < a; ++i) column[i] = table[i][j];
    dft<a, lanes>(column);
#pragma GCC unroll 16
    for (int i = 0; i < a; ++i) table[i][j] = column[i];
  }
#pragma GCC unroll 16
  for (int k = 0; k < a * b; ++k) x[k] = table[k % a][k % b];
}

template <int lanes>
[[gnu::always_inline]] inline void dft8(Complex<lanes> (&x)[8]) {
  Complex<lanes> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
  dft<4, lanes>(even);
  dft<4, lanes>(odd);
  odd[1] = {(odd[1].re + odd[1].im) * half_root, (odd[1].im - odd[1].re) * half_root};
  odd[2] = turned<lanes>(odd[2]);
  odd[3] = {(odd[3].im - odd[3].re) * half_root, (odd[3].re + odd[3].im) * -half_root};
#pragma GCC unroll 16
  for (int k = 0; k < 4; ++k) {
    x[k] = even[k] + odd[k];
    x[k + 4] = even[k] - odd[k];
  }
}

template <int lanes>
[[gnu::always_inline]] inline void dft9(Complex<lanes> (&x)[9]) {
  Complex<lanes> table[3][3];
#pragma GCC unroll 16
  for (int i = 0; i < 3; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < 3; ++j) table[i][j] = x[i + 3 * j];
    dft<3, lanes>(table[i]);
  }
#pragma GCC unroll 16
  for (int j = 0; j < 3; ++j) {
    Complex<lanes> column[3] = {table[0][j], table[1][j], table[2][j]};
#pragma GCC unroll 16
    for (int i = 1; j > 0 && i < 3; ++i)
      column[i] = rotated<lanes>(column[i], Roots<9>::cosine[i * j], Roots<9>::sine[i * j]);
    dft<3, lanes>(column);
#pragma GCC unroll 16
    for (int i = 0; i < 3; ++i) x[j + 3 * i] = column[i];
  }
}

// Transforms a few points in place, in registers.
template <int points, int lanes>
[[gnu::always_inline]] inline void dft(Complex<lanes> (&x)[points]) {
  if constexpr (points == 2) {
    const Complex<lanes> first = x[0];
    x[0] = first + x[1];
    x[1] = first - x[1];
  } else if constexpr (points == 4) {
    const Complex<lanes> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = turned<lanes>(x[1] - x[3]);
    x[0] = a + c;
    x[1] = b + d;
    x[2] = a - c;
    x[3] = b - d;
  } else if constexpr (points == 6) {
    coprime_dft<2, 3, lanes>(x);
  } else if constexpr (points == 8) {
    dft8<lanes>(x);
  } else if constexpr (points == 9) {
    dft9<lanes>(x);
  } else if constexpr (points == 10) {
    coprime_dft<2, 5, lanes>(x);
  } else if constexpr (points > 1) {
    odd_dft<points, lanes>(x);
  }
}

// A step of Stockham's algorithm: its results are in the order that the next step, or the caller, reads.
template <int radix, int lanes>
void fft_step(const FftStep& step, const float* in, std::int64_t in_stride, float* out, std::int64_t out_stride) {
  const float* roots = step.roots;
  for (int group = 0; group < step.groups; ++group, roots += 2 * (radix - 1))
    for (int place = 0; place < step.spacing; ++place) {
      Complex<lanes> x[radix];
      const float* from = in + (place + step.spacing * group) * in_stride;
#pragma GCC unroll 16
      for (int i = 0; i < radix; ++i) x[i] = load_complex<lanes>(from + i * step.spacing * step.groups * in_stride);
      dft<radix, lanes>(x);
      if (group > 0)
#pragma GCC unroll 16
        for (int i = 1; i < radix; ++i) x[i] = rotated<lanes>(x[i], roots[2 * i - 2], -roots[2 * i - 1]);
      float* to = out + (place + step.spacing * radix * group) * out_stride;
#pragma GCC unroll 16
      for (int i = 0; i < radix; ++i) store_complex<lanes>(to + i * step.spacing * out_stride, x[i]);
    }
}

// Transforms `points` complex vectors, `in_stride` and `out_stride` floats apart; `spare` holds 2 * `points` vectors.
template <int lanes>
void fft(const FftSteps& steps, const float* in, std::int64_t in_stride, float* out, std::int64_t out_stride,
         float* spare) {
  constexpr std::int64_t dense = 2 * lanes;
  for (int i = 0; i < steps.count; ++i) {
    const bool last = i + 1 == steps.count;
    float* to = last ? out : spare + (i % 2) * steps.points * dense;
    const std::int64_t to_stride = last ? out_stride : dense;
    with_constant<10>(steps.step[i].radix,
                      [&]<int radix>() { fft_step<radix, lanes>(steps.step[i], in, in_stride, to, to_stride); });
    in = to, in_stride = to_stride;
  }
}

}  // namespace
}  // namespace twiddle
