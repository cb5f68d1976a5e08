#pragma once
#include <utility>

#include "framework/for_each.h"

// Fourier transforms of the numbers that one thread has in registers. All loops are unrolled, so that every index and
// every twiddle factor is a compile-time constant: an array that is never indexed by a variable stays in registers, the
// reordering of an FFT only renames them, and twiddle factors become immediate operands.
namespace twiddle::small_fft {

struct alignas(8) Complex {
  float re, im;
};
TWIDDLE_HD constexpr Complex operator+(Complex a, Complex b) {
  return {a.re + b.re, a.im + b.im};
}
TWIDDLE_HD constexpr Complex operator-(Complex a, Complex b) {
  return {a.re - b.re, a.im - b.im};
}

// Two adjacent numbers, for one access of twice their bytes.
template <class Number>
struct alignas(2 * sizeof(Number)) Pair {
  Number first, second;
};
using ComplexPair = Pair<Complex>;

// A compile-time integer that can be passed to a generic lambda. (std::integral_constant converts on the host alone.)
template <int I>
struct Index {
  static constexpr int value = I;
  TWIDDLE_HD constexpr operator int() const { return I; }
};

template <class Function, int... I>
TWIDDLE_HD constexpr void unroll(const Function& function, std::integer_sequence<int, I...>) {
  (function(Index<I>{}), ...);
}
// function(Index<0>{}) to function(Index<Count - 1>{}): a loop whose counter is a constant in each round.
template <int Count, class Function>
TWIDDLE_HD constexpr void unrolled(const Function& function) {
  unroll(function, std::make_integer_sequence<int, Count>{});
}

// Count adjacent numbers to and from a thread's registers: by 16 bytes where Count is even, and then `from` and `to`
// are aligned to 16 bytes.
template <int Count>
TWIDDLE_HD void load_numbers(Complex (&v)[Count], const Complex* from) {
  if constexpr (Count % 2 == 0)
    unrolled<Count / 2>([&](auto i) {
      const ComplexPair pair = reinterpret_cast<const ComplexPair*>(from)[i];
      v[2 * i] = pair.first, v[2 * i + 1] = pair.second;
    });
  else
    unrolled<Count>([&](auto i) { v[i] = from[i]; });
}
template <int Count>
TWIDDLE_HD void store_numbers(const Complex (&v)[Count], Complex* to) {
  if constexpr (Count % 2 == 0)
    unrolled<Count / 2>([&](auto i) { reinterpret_cast<ComplexPair*>(to)[i] = {v[2 * i], v[2 * i + 1]}; });
  else
    unrolled<Count>([&](auto i) { to[i] = v[i]; });
}

// The sign of the exponent.
constexpr int forwards = -1, backwards = 1;

namespace detail {

constexpr double pi = 3.141592653589793238462643383279502884;

// Taylor series, since std::cos is not constexpr: exact to double precision for angles up to pi / 4. A turn is 2 pi.
TWIDDLE_HD constexpr double series_cos(double angle) {
  double term = 1, sum = 1;
  for (int i = 2; i < 24; i += 2) sum += term *= -angle * angle / (i * (i - 1));
  return sum;
}
TWIDDLE_HD constexpr double series_sin(double angle) {
  double term = angle, sum = angle;
  for (int i = 3; i < 25; i += 2) sum += term *= -angle * angle / (i * (i - 1));
  return sum;
}

// cos(2 pi k / n), 0 <= k < n, by a series of at most pi / 4; exact at multiples of pi / 2.
TWIDDLE_HD constexpr double turn_cos(int k, int n) {
  if (2 * k > n) k = n - k;
  const bool left = 4 * k > n;
  if (left) k = n - 2 * k, n *= 2;  // cos(x) = -cos(pi - x)
  if (left && k % 2 == 0) k /= 2, n /= 2;
  const double angle = 2 * pi * k / n;
  const double value = 8 * k > n ? series_sin(pi / 2 - angle) : series_cos(angle);
  return 4 * k == n ? 0 : left ? -value : value;
}
TWIDDLE_HD constexpr double turn_sin(int k, int n) {  // sin(x) = cos(x + 3 pi / 2)
  return turn_cos((4 * k + 3 * n) % (4 * n), 4 * n);
}

// value times e^(2 pi i K / N); a multiple of a quarter turn costs no multiplication.
template <int K, int N>
TWIDDLE_HD constexpr Complex times_root(Complex value) {
  constexpr int k = (K % N + N) % N;
  if constexpr (k == 0) {
    return value;
  } else if constexpr (4 * k == N) {
    return {-value.im, value.re};
  } else if constexpr (2 * k == N) {
    return {-value.re, -value.im};
  } else if constexpr (4 * k == 3 * N) {
    return {value.im, -value.re};
  } else {
    constexpr auto cosine = static_cast<float>(turn_cos(k, N)), sine = static_cast<float>(turn_sin(k, N));
    return {value.re * cosine - value.im * sine, value.re * sine + value.im * cosine};
  }
}

template <int Sign>
TWIDDLE_HD constexpr void transform_points(Complex (&v)[2]) {
  const Complex first = v[0];
  v[0] = first + v[1], v[1] = first - v[1];
}

template <int Sign>
TWIDDLE_HD constexpr void transform_points(Complex (&v)[4]) {
  const Complex even = v[0] + v[2], even_apart = v[0] - v[2], odd = v[1] + v[3];
  const Complex odd_apart = times_root<Sign, 4>(v[1] - v[3]);
  v[0] = even + odd, v[1] = even_apart + odd_apart, v[2] = even - odd, v[3] = even_apart - odd_apart;
}

// A butterfly of an odd prime radix, by the sum that defines it. The twiddle factors of points j and Radix - j are
// conjugates, so that the sum of the two points is multiplied by cosines alone and their difference by sines alone:
// half of the multiplications.
template <int Sign, int Radix>
TWIDDLE_HD constexpr void transform_points(Complex (&v)[Radix]) {
  constexpr int half = Radix / 2;
  Complex sums[half], differences[half], all = v[0];
  unrolled<half>([&](auto j) {
    sums[j] = v[j + 1] + v[Radix - 1 - j];
    differences[j] = v[j + 1] - v[Radix - 1 - j];
    all = all + sums[j];
  });
  const Complex first = v[0];
  unrolled<half>([&](auto k) {
    Complex even = first, odd{0, 0};
    unrolled<half>([&](auto j) {
      constexpr int steps = (decltype(j)::value + 1) * (decltype(k)::value + 1) % Radix;
      constexpr auto cosine = static_cast<float>(turn_cos(steps, Radix));
      constexpr auto sine = static_cast<float>(Sign * turn_sin(steps, Radix));
      even.re += cosine * sums[j].re, even.im += cosine * sums[j].im;
      odd.re -= sine * differences[j].im, odd.im += sine * differences[j].re;
    });
    v[k + 1] = even + odd, v[Radix - 1 - k] = even - odd;
  });
  v[0] = all;
}

TWIDDLE_HD constexpr int radix_of(int points) {
  for (const int radix : {4, 2, 3, 5})
    if (points % radix == 0) return radix;
  return 7;
}

}  // namespace detail

// v[k] becomes the sum over j of v[j] e^(Sign 2 pi i j k / Points), in natural order and not scaled, where Points is
// 2^a 3^b 5^c 7^d. Decimation in time (Cooley, Tukey, 1965): every radix-th point is transformed by itself,
// recursively; the results are multiplied by twiddle factors, and combined by butterflies of `radix` points.
template <int Sign, int Points>
TWIDDLE_HD constexpr void transform(Complex (&v)[Points]) {
  if constexpr (Points > 1) {
    constexpr int radix = detail::radix_of(Points), part = Points / radix;
    static_assert(Points % radix == 0, "only the factors 2, 3, 5 and 7");
    Complex parts[radix][part];
    unrolled<radix>([&](auto r) {
      unrolled<part>([&](auto i) { parts[r][i] = v[r + radix * i]; });
      transform<Sign>(parts[r]);
    });
    unrolled<part>([&](auto k) {
      Complex points[radix];
      unrolled<radix>([&](auto r) {
        points[r] = detail::times_root<Sign* decltype(r)::value* decltype(k)::value, Points>(parts[r][k]);
      });
      detail::transform_points<Sign>(points);
      unrolled<radix>([&](auto r) { v[k + part * r] = points[r]; });
    });
  }
}

}  // namespace twiddle::small_fft
