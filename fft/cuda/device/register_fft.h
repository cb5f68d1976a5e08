#pragma once
#include <utility>

#include "framework/for_each.h"

// Fourier transforms of one thread's own numbers: all indices and twiddle factors are known when it is compiled, so
// that the numbers stay in registers and a change of order costs nothing.
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

// Neighbours that are loaded and stored at once.
struct alignas(16) ComplexPair {
  Complex first, second;
};

// A number that is part of its type; std::integral_constant is for the host alone.
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

// A thread's own numbers, two at once where that many lie between places that 16 divides.
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

// A direction is the sign of the exponent.
constexpr int forwards = -1, backwards = 1;

namespace detail {

constexpr double pi = 3.141592653589793238462643383279502884;

// Both by their series, for at most an eighth of a turn.
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

// The cosine of k / n of a turn, 0 <= k < n; exact at quarters.
TWIDDLE_HD constexpr double turn_cos(int k, int n) {
  if (2 * k > n) k = n - k;
  const bool left = 4 * k > n;
  if (left) k = n - 2 * k, n *= 2;  // of half a turn less that angle, with the other sign
  if (left && k % 2 == 0) k /= 2, n /= 2;
  const double angle = 2 * pi * k / n;
  const double value = 8 * k > n ? series_sin(pi / 2 - angle) : series_cos(angle);
  return 4 * k == n ? 0 : left ? -value : value;
}
TWIDDLE_HD constexpr double turn_sin(int k, int n) {  // a quarter behind
  return turn_cos((4 * k + 3 * n) % (4 * n), 4 * n);
}

// value times e^(2 pi i K / N).
template <int K, int N>
TWIDDLE_HD constexpr Complex turned(Complex value) {
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
  const Complex odd_apart = turned<Sign, 4>(v[1] - v[3]);
  v[0] = even + odd, v[1] = even_apart + odd_apart, v[2] = even - odd, v[3] = even_apart - odd_apart;
}

// An odd prime, by its definition: points j and Radix - j have conjugate factors, so sums and differences of the two
// are multiplied by a cosine and by a sine alone.
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

// v becomes sum over j of v[j] e^(Sign 2 pi i j k / Points) for k = 0 .. Points - 1, in order, not divided by anything.
// Points: 2^a 3^b 5^c 7^d. Decimation in time (Cooley, Tukey, 1965).
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
        points[r] = detail::turned<Sign* decltype(r)::value* decltype(k)::value, Points>(parts[r][k]);
      });
      detail::transform_points<Sign>(points);
      unrolled<radix>([&](auto r) { v[k + part * r] = points[r]; });
    });
  }
}

}  // namespace twiddle::small_fft
