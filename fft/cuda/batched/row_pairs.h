#pragma once
#include "fft/cuda/batched/row_fft.h"

// The part of a real row's transform that makes its bins. Its m = A * B complex numbers are bins k1 + A k2: number k2
// of column k1. A row's threads are A / 2, and each has columns k1 and A - k1, for a real row's bins k and m - k are
// made of these two.
namespace twiddle::small_fft {

template <int N, int A>
struct PairedColumns : RowSize<N> {
  static constexpr int points = N / 2, half_row = N / 2 + 1, B = N / 2 / A, lanes = A / 2;
  static_assert(A * B == points && A % 2 == 0 && B % 2 == 0);

  struct Bins {
    Complex low[B], high[B];  // columns k1 and A - k1; of lane 0, columns 0 and A / 2
    Complex last;             // the partner of low[0]: of lane 0 the row's last bin, else of column high
  };
  TWIDDLE_HD static int low_column(int lane) { return lane; }
  TWIDDLE_HD static int high_column(int lane) { return lane == 0 ? A / 2 : A - lane; }

  // A thread's columns lie `pitch` apart, and `next` their numbers.
  TWIDDLE_HD static void load_columns(Bins& bins, int lane, const Complex* from, std::int64_t pitch,
                                      std::int64_t next) {
    const Complex *const low = from + low_column(lane) * pitch, *const high = from + high_column(lane) * pitch;
    unrolled<B>([&](auto i) { bins.low[i] = low[i * next], bins.high[i] = high[i * next]; });
  }
  TWIDDLE_HD static void store_columns(const Bins& bins, int lane, Complex* to, std::int64_t pitch, std::int64_t next) {
    Complex *const low = to + low_column(lane) * pitch, *const high = to + high_column(lane) * pitch;
    unrolled<B>([&](auto i) { low[i * next] = bins.low[i], high[i * next] = bins.high[i]; });
  }
  // The same with the row's last bin.
  TWIDDLE_HD static void load_bins(Bins& bins, int lane, const Complex* from, std::int64_t pitch, std::int64_t next) {
    load_columns(bins, lane, from, pitch, next);
    bins.last = *(lane == 0 ? from + B * next : from + high_column(lane) * pitch + (B - 1) * next);
  }
  TWIDDLE_HD static void store_bins(const Bins& bins, int lane, Complex* to, std::int64_t pitch, std::int64_t next) {
    store_columns(bins, lane, to, pitch, next);
    if (lane == 0) to[B * next] = bins.last;
  }

  // What the odd elements are turned by, from the N-th roots.
  TWIDDLE_HD static void load_factors(Complex (&factors)[B], int lane, const Complex* roots) {
    const int column = lane == 0 ? A / 2 : lane;
    unrolled<B>([&](auto k2) { factors[k2] = roots[(2 * k2 < B ? lane : column) + A * k2]; });
  }
  // Columns, transformed, to bins.
  TWIDDLE_HD static void to_bins(Bins& bins, int lane, const Complex (&factors)[B]) {
    const Complex middle = bins.low[B / 2];
    bins.last = chosen(lane == 0, bins.low[0], bins.high[B - 1]);
    each_pair(lane == 0, bins, [&](auto k2, Complex& a, Complex& b) {
      const EvenOdd parts = even_odd(a, b);
      to_row_bins(parts.even, factors[k2] * parts.odd, a, b);
    });
    if (lane == 0) bins.low[B / 2] = conj(middle);
  }
  // And back, twice as large.
  TWIDDLE_HD static void from_bins(Bins& bins, int lane, const Complex (&factors)[B]) {
    const Complex middle = bins.low[B / 2];
    each_pair(lane == 0, bins, [&](auto k2, Complex& a, Complex& b) {
      const EvenOdd parts = even_odd_of_bins(a, b);
      from_row_bins(parts.even, conj(factors[k2]) * parts.odd, a, b);
    });
    if (lane == 0) bins.low[B / 2] = scaled(conj(middle), 2);
  }

 private:
  TWIDDLE_HD static Complex chosen(bool first, Complex a, Complex b) {
    return {first ? a.re : b.re, first ? a.im : b.im};
  }
  // pair(k2, bin k, bin m - k) B times. Of columns that are each other's partners they are numbers k2 of the one and
  // B - 1 - k2 of the other. Columns 0 and A / 2 (`own`) are each their own partner: the first rounds take the pairs of
  // the one, the others those of the other, by choices, so that all threads of a warp take the same steps. What that
  // leaves out is number B / 2 of column 0, its own partner.
  template <class Pair>
  TWIDDLE_HD static void each_pair(bool own, Bins& bins, const Pair& pair) {
    Complex a[B], b[B];
    unrolled<B>([&](auto round) {
      constexpr int k2 = decltype(round)::value;
      if constexpr (k2 == 0)
        a[k2] = bins.low[k2], b[k2] = bins.last;
      else if constexpr (2 * k2 < B)
        a[k2] = bins.low[k2], b[k2] = chosen(own, bins.low[B - k2], bins.high[B - 1 - k2]);
      else
        a[k2] = chosen(own, bins.high[k2], bins.low[k2]), b[k2] = bins.high[B - 1 - k2];
      pair(round, a[k2], b[k2]);
    });
    unrolled<B>([&](auto round) {
      constexpr int k2 = decltype(round)::value;
      if constexpr (2 * k2 < B)
        bins.low[k2] = a[k2], bins.high[k2] = b[B - 1 - k2];
      else
        bins.low[k2] = chosen(own, b[B - k2], a[k2]), bins.high[k2] = chosen(own, a[k2], b[B - 1 - k2]);
    });
    bins.last = b[0];
  }
};

}  // namespace twiddle::small_fft
