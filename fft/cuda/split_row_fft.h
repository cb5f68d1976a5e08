#pragma once
#include "fft/cuda/row_fft.h"

// Real transforms of rows that several threads share. The m = A * B complex numbers of a row are transformed in two
// steps: element b + B a and bin k1 + A k2 meet in the exchange at place (k1, b). A thread takes the columns k1 and
// A - k1, whose bins a real row's bins are made of in pairs.
namespace twiddle::small_fft {

template <int N, int A, int Threads>
struct SplitRows : RowSize<N> {
  static constexpr int points = N / 2, half_row = N / 2 + 1, B = N / 2 / A;
  static_assert(A * B == points && 16 % (A / 2) == 0 && B % (A / 2) == 0);
  static constexpr int lanes = A / 2;         // threads of a row
  static constexpr int elements = B / lanes;  // b that a thread has: its lane, and so on by `lanes`
  static constexpr int threads = Threads, count = Threads / lanes;
  // Half a warp meets sixteen different pairs of banks: with `lanes` neighbours of each row, and rows `lanes` apart.
  static constexpr int pitch = points + B + 1;
  static_assert(count % 16 == 0 && lanes * pitch % 16 == lanes && lanes * half_row % 16 == lanes % 16);
  struct alignas(16) Shared {
    Complex numbers[count * pitch];
  };
  struct Registers {
    Complex low[B], high[B], last;  // columns k1 and A - k1; of lane 0, columns 0 and A / 2
  };

  TWIDDLE_HD static int lane_of(int thread) { return thread % lanes; }
  TWIDDLE_HD static int row_of(int thread) {
    constexpr int together = 16 / lanes;
    const int group = thread / lanes;
    return group / 16 * 16 + group % together * lanes + group / together % lanes;
  }
  TWIDDLE_HD static bool has(std::int64_t rows, std::int64_t block, int thread) {
    return row_of(thread) < count_in_block<count>(rows, block);
  }
  TWIDDLE_HD static int low_column(int lane) { return lane; }
  TWIDDLE_HD static int high_column(int lane) { return lane == 0 ? A / 2 : A - lane; }
  // Where column k1 of element b is; the columns of one element follow each other.
  TWIDDLE_HD static int exchange_place(int row, int b) { return row * pitch + (A + 1) * b; }
};

template <int N, int A, int Threads>
struct SplitRowsForward : SplitRows<N, A, Threads> {
  using Base = SplitRows<N, A, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchForward;
  static constexpr int steps = 4, points = Base::points, half_row = Base::half_row, B = Base::B, lanes = Base::lanes;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    if (!Base::has(a.count, block, thread)) return;
    const int row = Base::row_of(thread), lane = Base::lane_of(thread);
    const auto* const source = reinterpret_cast<const Complex*>(a.source) + (block * Base::count + row) * points + lane;
    Complex v[Base::elements][A];
    unrolled<Base::elements>([&](auto e) { unrolled<A>([&](auto i) { v[e][i] = source[lanes * e + B * i]; }); });
    unrolled<Base::elements>([&](auto e) {
      const int b = lane + lanes * e;
      transform<forwards>(v[e]);
      Complex* const at = shared.numbers + Base::exchange_place(row, b);
      at[0] = v[e][0];
      unrolled<A - 1>([&](auto before) {
        constexpr int column = decltype(before)::value + 1;
        at[column] = v[e][column] * root<points>(column * b);
      });
    });
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (!Base::has(a.count, block, thread)) return;
    const int row = Base::row_of(thread), lane = Base::lane_of(thread);
    unrolled<B>([&](auto b) {
      const Complex* const at = shared.numbers + Base::exchange_place(row, b);
      r.low[b] = at[Base::low_column(lane)], r.high[b] = at[Base::high_column(lane)];
    });
    transform<forwards>(r.low);
    transform<forwards>(r.high);
    if (lane > 0) {
      unrolled<B>([&](auto k2) {
        const EvenOdd parts = even_odd(r.low[k2], r.high[B - 1 - k2]);
        to_row_bins(parts.even, root<N>(lane + A * k2) * parts.odd, r.low[k2], r.high[B - 1 - k2]);
      });
    } else {
      columns_that_are_their_own(r);
    }
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (!Base::has(a.count, block, thread)) return;
    const int lane = Base::lane_of(thread);
    Complex* const at = shared.numbers + Base::row_of(thread) * half_row;
    unrolled<B>([&](auto k2) {
      at[Base::low_column(lane) + A * k2] = r.low[k2], at[Base::high_column(lane) + A * k2] = r.high[k2];
    });
    if (lane == 0) at[points] = r.last;
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const int rows = count_in_block<Base::count>(a.count, block);
    if (a.pitch == 0)
      return store_stretch<half_row, half_row, Threads>(shared.numbers, a.spectrum + block * Base::count * half_row,
                                                        rows * half_row, thread);
    const int row = thread % Base::count;
    if (row >= rows) return;
    Complex* const spectrum = a.spectrum + block * Base::count + row;
    for (int bin = thread / Base::count; bin < half_row; bin += Threads / Base::count)
      spectrum[bin * a.pitch] = shared.numbers[row * half_row + bin];
  }

 private:
  TWIDDLE_HD static void columns_that_are_their_own(Registers& r) {
    const Complex first = r.low[0];
    r.low[0] = {first.re + first.im, 0}, r.last = {first.re - first.im, 0};
    r.low[B / 2] = conj(r.low[B / 2]);
    unrolled<B / 2 - 1>([&](auto before) {
      constexpr int k2 = decltype(before)::value + 1;
      const EvenOdd parts = even_odd(r.low[k2], r.low[B - k2]);
      to_row_bins(parts.even, detail::turned<-A * k2, N>(parts.odd), r.low[k2], r.low[B - k2]);
    });
    unrolled<B / 2>([&](auto k2) {
      constexpr int k = A / 2 + A * decltype(k2)::value;
      const EvenOdd parts = even_odd(r.high[k2], r.high[B - 1 - k2]);
      to_row_bins(parts.even, detail::turned<-k, N>(parts.odd), r.high[k2], r.high[B - 1 - k2]);
    });
  }
};

template <int N, int A, int Threads>
struct SplitRowsInverse : SplitRows<N, A, Threads> {
  using Base = SplitRows<N, A, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchInverse;
  static constexpr int steps = 4, points = Base::points, half_row = Base::half_row, B = Base::B, lanes = Base::lanes;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const int rows = count_in_block<Base::count>(a.count, block);
    if (a.pitch == 0)
      return load_stretch<half_row, half_row, Base::count * half_row, Threads>(
          shared.numbers, a.spectrum + block * Base::count * half_row, rows * half_row, thread);
    const int row = thread % Base::count;
    if (row >= rows) return;
    const Complex* const spectrum = a.spectrum + block * Base::count + row;
    for (int bin = thread / Base::count; bin < half_row; bin += Threads / Base::count)
      shared.numbers[row * half_row + bin] = spectrum[bin * a.pitch];
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (!Base::has(a.count, block, thread)) return;
    const int lane = Base::lane_of(thread), low = Base::low_column(lane), high = Base::high_column(lane);
    const Complex* const at = shared.numbers + Base::row_of(thread) * half_row;
    unrolled<B>([&](auto k2) { r.low[k2] = at[low + A * k2], r.high[k2] = at[high + A * k2]; });
    if (lane > 0) {
      unrolled<B>([&](auto k2) {
        const EvenOdd parts = even_odd_of_bins(r.low[k2], r.high[B - 1 - k2]);
        from_row_bins(parts.even, conj(root<N>(lane + A * k2)) * parts.odd, r.low[k2], r.high[B - 1 - k2]);
      });
    } else {
      r.last = at[points];
      columns_that_are_their_own(r);
    }
    transform<backwards>(r.low);
    transform<backwards>(r.high);
    unrolled<B - 1>([&](auto before) {
      constexpr int b = decltype(before)::value + 1;
      r.low[b] = r.low[b] * conj(root<points>(low * b));
      r.high[b] = r.high[b] * conj(root<points>(high * b));
    });
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers& r) {
    if (!Base::has(a.count, block, thread)) return;
    const int row = Base::row_of(thread), lane = Base::lane_of(thread);
    unrolled<B>([&](auto b) {
      Complex* const at = shared.numbers + Base::exchange_place(row, b);
      at[Base::low_column(lane)] = r.low[b], at[Base::high_column(lane)] = r.high[b];
    });
  }

  TWIDDLE_HD static void step(Index<3>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    if (!Base::has(a.count, block, thread)) return;
    const int row = Base::row_of(thread), lane = Base::lane_of(thread);
    auto* const target = reinterpret_cast<Complex*>(a.target) + (block * Base::count + row) * points + lane;
    unrolled<Base::elements>([&](auto e) {
      const Complex* const at = shared.numbers + Base::exchange_place(row, lane + lanes * e);
      Complex v[A];
      unrolled<A>([&](auto column) { v[column] = at[column]; });
      transform<backwards>(v);
      unrolled<A>([&](auto i) { target[lanes * e + B * i] = scaled(v[i], 1.f / N); });
    });
  }

 private:
  TWIDDLE_HD static void columns_that_are_their_own(Registers& r) {
    r.low[0] = {r.low[0].re + r.last.re, r.low[0].re - r.last.re};
    r.low[B / 2] = scaled(conj(r.low[B / 2]), 2);
    unrolled<B / 2 - 1>([&](auto before) {
      constexpr int k2 = decltype(before)::value + 1;
      const EvenOdd parts = even_odd_of_bins(r.low[k2], r.low[B - k2]);
      from_row_bins(parts.even, detail::turned<A * k2, N>(parts.odd), r.low[k2], r.low[B - k2]);
    });
    unrolled<B / 2>([&](auto k2) {
      constexpr int k = A / 2 + A * decltype(k2)::value;
      const EvenOdd parts = even_odd_of_bins(r.high[k2], r.high[B - 1 - k2]);
      from_row_bins(parts.even, detail::turned<k, N>(parts.odd), r.high[k2], r.high[B - 1 - k2]);
    });
  }
};

}  // namespace twiddle::small_fft
