#pragma once
#include <cstdint>

// This folder is compiled once per instruction set. The namespace is unnamed, so that the linker never merges code of
// two sets.
namespace twiddle {
namespace {

template <int lanes>
struct VectorOf {
  typedef float Floats __attribute__((vector_size(lanes * 4), aligned(4), may_alias));
  typedef std::int32_t Indices __attribute__((vector_size(lanes * 4)));
};

template <int lanes>
using Floats = typename VectorOf<lanes>::Floats;

template <int lanes>
[[gnu::always_inline]] inline Floats<lanes> load(const float* from) {
  return *reinterpret_cast<const Floats<lanes>*>(from);
}

template <int lanes>
[[gnu::always_inline]] inline void store(float* to, Floats<lanes> value) {
  *reinterpret_cast<Floats<lanes>*>(to) = value;
}

// Operations that have an instruction in some instruction sets; these are for sets without it.
template <int lanes>
struct Special {
  // Loads only the first `count` lanes, as memory may end there; the others are zero.
  static Floats<lanes> load_first(const float* from, int count) {
    Floats<lanes> value = {};
    for (int lane = 0; lane < count; ++lane) value[lane] = from[lane];
    return value;
  }
  static void store_first(float* to, Floats<lanes> value, int count) {
    for (int lane = 0; lane < count; ++lane) to[lane] = value[lane];
  }
  // A non-temporal store, for data larger than the caches: memory is written without being read first.
  static void stream(float* to, Floats<lanes> value) { store<lanes>(to, value); }
  static void finish_streams() {}  // a fence: makes streamed data visible to other threads
};

// lanes complex numbers, stored as [re of each][im of each].
template <int lanes>
struct Complex {
  Floats<lanes> re, im;
};

template <int lanes>
[[gnu::always_inline]] inline Complex<lanes> load_complex(const float* from) {
  return {load<lanes>(from), load<lanes>(from + lanes)};
}

template <int lanes>
[[gnu::always_inline]] inline void store_complex(float* to, const Complex<lanes>& value) {
  store<lanes>(to, value.re);
  store<lanes>(to + lanes, value.im);
}

template <int lanes>
[[gnu::always_inline]] inline void prefetch(const float* complex) {
  constexpr int line = 16;  // floats of a cache line
  for (int i = 0; i < 2 * lanes; i += line) __builtin_prefetch(complex + i);
}

template <int lanes>
[[gnu::always_inline]] inline void stream_complex(float* to, const Complex<lanes>& value) {
  Special<lanes>::stream(to, value.re);
  Special<lanes>::stream(to + lanes, value.im);
}

template <int lanes>
[[gnu::always_inline]] inline Complex<lanes> operator+(const Complex<lanes>& a, const Complex<lanes>& b) {
  return {a.re + b.re, a.im + b.im};
}

template <int lanes>
[[gnu::always_inline]] inline Complex<lanes> operator-(const Complex<lanes>& a, const Complex<lanes>& b) {
  return {a.re - b.re, a.im - b.im};
}

// Transposes `lanes` vectors as a square matrix, in registers: swaps blocks of half the size, then of a quarter ...
template <int lanes, int distance = lanes / 2>
[[gnu::always_inline]] inline void transpose(Floats<lanes> (&rows)[lanes]) {
  typename VectorOf<lanes>::Indices low, high;
#pragma GCC unroll 16
  for (int lane = 0; lane < lanes; ++lane) {
    low[lane] = (lane & distance) ? lanes + lane - distance : lane;
    high[lane] = (lane & distance) ? lanes + lane : lane + distance;
  }
#pragma GCC unroll 16
  for (int row = 0; row < lanes; ++row)
    if (!(row & distance)) {
      const Floats<lanes> above = rows[row], below = rows[row + distance];
      rows[row] = __builtin_shuffle(above, below, low);
      rows[row + distance] = __builtin_shuffle(above, below, high);
    }
  if constexpr (distance > 1) transpose<lanes, distance / 2>(rows);
}

}  // namespace
}  // namespace twiddle
