#pragma once
#include "fft/cuda/row_fft.h"

// A real row that several threads share. Its m = A * B complex numbers are transformed in two halves: element b + B a
// and bin k1 + A k2 meet in the exchange at column k1 of b. A thread takes the columns k1 and A - k1, whose bins a real
// row's bins are made of in pairs.
namespace twiddle::small_fft {

template <int N, int A>
struct SplitRow : RowSize<N> {
  static constexpr int points = N / 2, half_row = N / 2 + 1, B = N / 2 / A;
  static constexpr int lanes = A / 2;         // threads of a row
  static constexpr int elements = B / lanes;  // b that a thread has: its lane, and so on by `lanes`
  static_assert(A * B == points && 16 % lanes == 0 && B % lanes == 0);
  // Of the exchange: the columns of one b follow each other, `gap` apart from those of the next. Bins may lie so too.
  static constexpr int gap = A + 1, length = gap * B + 1;

  struct Bins {
    Complex low[B], high[B], last;  // columns k1 and A - k1; of lane 0, columns 0 and A / 2
  };

  // Half a warp has `lanes` neighbours of rows that are `lanes` apart: it meets sixteen different pairs of banks.
  TWIDDLE_HD static int row_of(int thread) {
    constexpr int together = 16 / lanes;
    const int group = thread / lanes;
    return group / 16 * 16 + group % together * lanes + group / together % lanes;
  }
  TWIDDLE_HD static int low_column(int lane) { return lane; }
  TWIDDLE_HD static int high_column(int lane) { return lane == 0 ? A / 2 : A - lane; }

  // A thread's columns, whose numbers lie `pitch` apart, and `next` those of the next b or k2.
  TWIDDLE_HD static void load_columns(Bins& bins, int lane, const Complex* from, std::int64_t pitch,
                                      std::int64_t next) {
    const Complex *const low = from + low_column(lane) * pitch, *const high = from + high_column(lane) * pitch;
    unrolled<B>([&](auto i) { bins.low[i] = low[i * next], bins.high[i] = high[i * next]; });
  }
  TWIDDLE_HD static void store_columns(const Bins& bins, int lane, Complex* to, std::int64_t pitch, std::int64_t next) {
    Complex *const low = to + low_column(lane) * pitch, *const high = to + high_column(lane) * pitch;
    unrolled<B>([&](auto i) { low[i * next] = bins.low[i], high[i * next] = bins.high[i]; });
  }
  // The same with the row's last bin, which is lane 0's.
  TWIDDLE_HD static void load_bins(Bins& bins, int lane, const Complex* from, std::int64_t pitch, std::int64_t next) {
    load_columns(bins, lane, from, pitch, next);
    if (lane == 0) bins.last = from[B * next];
  }
  TWIDDLE_HD static void store_bins(const Bins& bins, int lane, Complex* to, std::int64_t pitch, std::int64_t next) {
    store_columns(bins, lane, to, pitch, next);
    if (lane == 0) to[B * next] = bins.last;
  }

  TWIDDLE_HD static void forward_elements(const Complex* source, int lane, Complex* exchange) {
    Complex v[elements][A];
    unrolled<elements>([&](auto e) { unrolled<A>([&](auto i) { v[e][i] = source[lane + lanes * e + B * i]; }); });
    unrolled<elements>([&](auto e) {
      const int b = lane + lanes * e;
      transform<forwards>(v[e]);
      Complex* const at = exchange + gap * b;
      at[0] = v[e][0];
      unrolled<A - 1>([&](auto before) {
        constexpr int column = decltype(before)::value + 1;
        at[column] = v[e][column] * root<points>(column * b);
      });
    });
  }
  TWIDDLE_HD static void forward_columns(const Complex* exchange, int lane, Bins& bins) {
    load_columns(bins, lane, exchange, 1, gap);
    transform<forwards>(bins.low);
    transform<forwards>(bins.high);
    if (lane == 0) return forward_own_columns(bins);
    unrolled<B>([&](auto k2) {
      const EvenOdd parts = even_odd(bins.low[k2], bins.high[B - 1 - k2]);
      to_row_bins(parts.even, root<N>(lane + A * k2) * parts.odd, bins.low[k2], bins.high[B - 1 - k2]);
    });
  }

  // Bins to what the exchange's columns hold.
  TWIDDLE_HD static void inverse_columns(int lane, Bins& bins) {
    if (lane == 0)
      inverse_own_columns(bins);
    else
      unrolled<B>([&](auto k2) {
        const EvenOdd parts = even_odd_of_bins(bins.low[k2], bins.high[B - 1 - k2]);
        from_row_bins(parts.even, conj(root<N>(lane + A * k2)) * parts.odd, bins.low[k2], bins.high[B - 1 - k2]);
      });
    transform<backwards>(bins.low);
    transform<backwards>(bins.high);
    const int low = low_column(lane), high = high_column(lane);
    unrolled<B - 1>([&](auto before) {
      constexpr int b = decltype(before)::value + 1;
      bins.low[b] = bins.low[b] * conj(root<points>(low * b));
      bins.high[b] = bins.high[b] * conj(root<points>(high * b));
    });
  }
  TWIDDLE_HD static void inverse_elements(const Complex* exchange, int lane, float scale, Complex* target) {
    unrolled<elements>([&](auto e) {
      const Complex* const at = exchange + gap * (lane + lanes * e);
      Complex v[A];
      unrolled<A>([&](auto column) { v[column] = at[column]; });
      transform<backwards>(v);
      unrolled<A>([&](auto i) { target[lane + lanes * e + B * i] = scaled(v[i], scale); });
    });
  }

 private:
  // Columns 0 and A / 2 are each their own partner.
  TWIDDLE_HD static void forward_own_columns(Bins& bins) {
    const Complex first = bins.low[0];
    bins.low[0] = {first.re + first.im, 0}, bins.last = {first.re - first.im, 0};
    bins.low[B / 2] = conj(bins.low[B / 2]);
    unrolled<B / 2 - 1>([&](auto before) {
      constexpr int k2 = decltype(before)::value + 1;
      const EvenOdd parts = even_odd(bins.low[k2], bins.low[B - k2]);
      to_row_bins(parts.even, detail::turned<-A * k2, N>(parts.odd), bins.low[k2], bins.low[B - k2]);
    });
    unrolled<B / 2>([&](auto k2) {
      constexpr int k = A / 2 + A * decltype(k2)::value;
      const EvenOdd parts = even_odd(bins.high[k2], bins.high[B - 1 - k2]);
      to_row_bins(parts.even, detail::turned<-k, N>(parts.odd), bins.high[k2], bins.high[B - 1 - k2]);
    });
  }
  TWIDDLE_HD static void inverse_own_columns(Bins& bins) {
    bins.low[0] = {bins.low[0].re + bins.last.re, bins.low[0].re - bins.last.re};
    bins.low[B / 2] = scaled(conj(bins.low[B / 2]), 2);
    unrolled<B / 2 - 1>([&](auto before) {
      constexpr int k2 = decltype(before)::value + 1;
      const EvenOdd parts = even_odd_of_bins(bins.low[k2], bins.low[B - k2]);
      from_row_bins(parts.even, detail::turned<A * k2, N>(parts.odd), bins.low[k2], bins.low[B - k2]);
    });
    unrolled<B / 2>([&](auto k2) {
      constexpr int k = A / 2 + A * decltype(k2)::value;
      const EvenOdd parts = even_odd_of_bins(bins.high[k2], bins.high[B - 1 - k2]);
      from_row_bins(parts.even, detail::turned<k, N>(parts.odd), bins.high[k2], bins.high[B - 1 - k2]);
    });
  }
};

}  // namespace twiddle::small_fft
