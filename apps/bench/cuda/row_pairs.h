#pragma once
#include "apps/bench/cuda/row_fft.h"

// The last part of a real row's transform that several threads share: from the transform Z of its m = A * B complex
// numbers to its bins (row_fft.h). Seen as a matrix, Z[k1 + A k2] is number k2 of column k1. Bins k and m - k of the
// row need Z[k] and Z[m-k]; if k is in column k1, then m - k is in column A - k1. So a row has A / 2 threads, its
// lanes, and lane k1 holds columns k1 and A - k1, where all partners meet:
//
//   lane 0       columns 0 and A/2, each its own partner: number k2 of column 0 pairs with B - k2, of column A/2 with
//                B - 1 - k2; bin 0 pairs with the row's last bin, m, and number B/2 of column 0 with itself
//   lane k1 > 0  columns k1 and A - k1: number k2 of the one pairs with B - 1 - k2 of the other
namespace twiddle::small_fft {

template <int N, int A>
struct RowPairs {
  static constexpr int points = N / 2, half_row = N / 2 + 1, B = N / 2 / A, lanes = A / 2;
  static_assert(A * B == points && A % 2 == 0 && B % 2 == 0);

  struct Bins {
    Complex low[B], high[B];  // columns k1 and A - k1; of lane 0, columns 0 and A / 2
    Complex last;             // the partner of low[0]: for lane 0 the row's bin m, else a copy of high[B - 1]
  };
  TWIDDLE_HD static int low_column(int lane) { return lane; }
  TWIDDLE_HD static int high_column(int lane) { return lane == 0 ? A / 2 : A - lane; }

  // Columns are `pitch` apart, and the numbers of a column `next`.
  TWIDDLE_HD static void load_columns(Bins& bins, int lane, const Complex* from, std::int64_t pitch,
                                      std::int64_t next) {
    const Complex *const low = from + low_column(lane) * pitch, *const high = from + high_column(lane) * pitch;
    unrolled<B>([&](auto i) { bins.low[i] = low[i * next], bins.high[i] = high[i * next]; });
  }
  TWIDDLE_HD static void store_columns(const Bins& bins, int lane, Complex* to, std::int64_t pitch, std::int64_t next) {
    Complex *const low = to + low_column(lane) * pitch, *const high = to + high_column(lane) * pitch;
    unrolled<B>([&](auto i) { low[i * next] = bins.low[i], high[i * next] = bins.high[i]; });
  }
  // The same of a row's bins, with bin m.
  TWIDDLE_HD static void load_bins(Bins& bins, int lane, const Complex* from, std::int64_t pitch, std::int64_t next) {
    load_columns(bins, lane, from, pitch, next);
    bins.last = *(lane == 0 ? from + B * next : from + high_column(lane) * pitch + (B - 1) * next);
  }
  TWIDDLE_HD static void store_bins(const Bins& bins, int lane, Complex* to, std::int64_t pitch, std::int64_t next) {
    store_columns(bins, lane, to, pitch, next);
    if (lane == 0) to[B * next] = bins.last;
  }

  // The factors e^(-2 pi i k / N) of O[k], in the order of each_pair().
  TWIDDLE_HD static void load_factors(Complex (&factors)[B], int lane, const Complex* roots) {
    const int column = lane == 0 ? A / 2 : lane;
    unrolled<B>([&](auto k2) { factors[k2] = roots[(2 * k2 < B ? lane : column) + A * k2]; });
  }
  // From Z to the row's bins.
  TWIDDLE_HD static void to_bins(Bins& bins, int lane, const Complex (&factors)[B]) {
    const Complex middle = bins.low[B / 2];
    bins.last = chosen(lane == 0, bins.low[0], bins.high[B - 1]);
    each_pair(lane == 0, bins, [&](auto k2, Complex& a, Complex& b) {
      const EvenOdd parts = even_odd(a, b);
      to_row_bins(parts.even, factors[k2] * parts.odd, a, b);
    });
    if (lane == 0) bins.low[B / 2] = conj(middle);
  }
  // The inverse, without a factor of two.
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
  // pair(k2, number k, number m - k), B times. `own`: lane 0, whose first B / 2 pairs are those of column 0 and whose
  // other ones are those of column A/2. Lane 0 differs by selects and not by branches, so that its warp does not
  // diverge. Its number B / 2 of column 0 is in no pair; to_bins() and from_bins() handle it.
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
