#pragma once
#include "fft/cuda/batched/block_steps.h"

// Real transforms of rows by complex ones of half the length. A row of N = 2 m real numbers is read as m complex ones,
// z[j] = x[2j] + i x[2j+1]. With Z its transform, E[k] = (Z[k] + conj Z[m-k]) / 2 is the transform of the even elements
// and O[k] = (Z[k] - conj Z[m-k]) / 2i that of the odd ones, and bin k of the row is E[k] + e^(-2 pi i k / N) O[k]. Bin
// m - k follows from the same two, so that bins are computed in pairs.
namespace twiddle::small_fft {

// E[k] and O[k], from a = Z[k] and b = Z[m-k].
struct EvenOdd {
  Complex even, odd;
};
TWIDDLE_HD constexpr EvenOdd even_odd(Complex a, Complex b) {
  return {{0.5f * (a.re + b.re), 0.5f * (a.im - b.im)}, {0.5f * (a.im + b.im), 0.5f * (b.re - a.re)}};
}
// Bins k and m - k of the row in place of Z[k] and Z[m-k]; `odd` was multiplied by e^(-2 pi i k / N).
TWIDDLE_HD constexpr void to_row_bins(Complex even, Complex odd, Complex& a, Complex& b) {
  a = even + odd, b = conj(even - odd);
}
// The inverse, but for a factor of two: `odd` is to be multiplied by e^(2 pi i k / N).
TWIDDLE_HD constexpr EvenOdd even_odd_of_bins(Complex a, Complex b) {
  return {a + conj(b), a - conj(b)};
}
TWIDDLE_HD constexpr void from_row_bins(Complex even, Complex odd, Complex& a, Complex& b) {
  a = {even.re - odd.im, even.im + odd.re}, b = {even.re + odd.im, odd.re - even.im};
}

template <int N>
struct RowSize {
  static_assert(N % 2 == 0);
  static constexpr int points = N / 2, half_row = N / 2 + 1;
};

// Bins 0 .. m - 1 of the row in place of Z; bin m is returned.
template <int N>
TWIDDLE_HD constexpr Complex to_row_bins(Complex (&v)[N / 2]) {
  constexpr int m = N / 2;
  const Complex first = v[0];
  unrolled<(m - 1) / 2>([&](auto before) {
    constexpr int k = decltype(before)::value + 1;
    const EvenOdd parts = even_odd(v[k], v[m - k]);
    to_row_bins(parts.even, detail::times_root<-k, N>(parts.odd), v[k], v[m - k]);
  });
  if constexpr (m % 2 == 0) v[m / 2] = conj(v[m / 2]);
  v[0] = {first.re + first.im, 0};
  return {first.re - first.im, 0};
}
template <int N>
TWIDDLE_HD constexpr void from_row_bins(Complex (&v)[N / 2], Complex last) {
  constexpr int m = N / 2;
  v[0] = {v[0].re + last.re, v[0].re - last.re};
  unrolled<(m - 1) / 2>([&](auto before) {
    constexpr int k = decltype(before)::value + 1;
    const EvenOdd parts = even_odd_of_bins(v[k], v[m - k]);
    from_row_bins(parts.even, detail::times_root<k, N>(parts.odd), v[k], v[m - k]);
  });
  if constexpr (m % 2 == 0) v[m / 2] = scaled(conj(v[m / 2]), 2);
}

struct NoRegisters {};

// A thread a row, PerThread of them one after the other, for rows that fit its registers. Rows are loaded and stored
// through shared memory: if each thread accessed its own row in global memory, a warp's accesses would not be
// coalesced.
template <int N, int Threads, int PerThread>
struct ThreadRows : RowSize<N> {
  using Size = RowSize<N>;
  using Registers = NoRegisters;
  static constexpr int threads = Threads, count = Threads * PerThread;
  static constexpr int pitch = Size::half_row | 1;  // odd: no bank conflicts
  struct alignas(16) Shared {
    Complex numbers[count * pitch];
  };
  static_assert(count % 2 == 0, "blocks begin at addresses that are aligned to 16 bytes");
};

template <int N, int Threads, int PerThread>
struct ThreadRowsForward : ThreadRows<N, Threads, PerThread> {
  using Base = ThreadRows<N, Threads, PerThread>;
  using typename Base::Shared, typename Base::Size, typename Base::Registers;
  using Arguments = BatchForward;
  static constexpr int steps = 3, points = Size::points, half_row = Size::half_row;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto* const source = reinterpret_cast<const Complex*>(a.source) + block * Base::count * points;
    load_contiguous<points, Base::pitch, Base::count * points, Threads>(
        shared.numbers, source, count_in_block<Base::count>(a.count, block) * points, thread);
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    for (int row = thread; row < count_in_block<Base::count>(a.count, block); row += Threads) {
      Complex* const at = shared.numbers + row * Base::pitch;
      Complex v[points];
      unrolled<points>([&](auto i) { v[i] = at[i]; });
      transform<forwards>(v);
      const Complex last = to_row_bins<N>(v);
      if (a.pitch == 0) {
        unrolled<points>([&](auto i) { at[i] = v[i]; });
        at[points] = last;
      } else {
        Complex* bin = a.spectrum + block * Base::count + row;
        unrolled<points>([&](auto i) { *bin = v[i], bin += a.pitch; });
        *bin = last;
      }
    }
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    if (a.pitch != 0) return;
    store_contiguous<half_row, Base::pitch, Threads>(shared.numbers, a.spectrum + block * Base::count * half_row,
                                                     count_in_block<Base::count>(a.count, block) * half_row, thread);
  }
};

template <int N, int Threads, int PerThread>
struct ThreadRowsInverse : ThreadRows<N, Threads, PerThread> {
  using Base = ThreadRows<N, Threads, PerThread>;
  using typename Base::Shared, typename Base::Size, typename Base::Registers;
  using Arguments = BatchInverse;
  static constexpr int steps = 3, points = Size::points, half_row = Size::half_row;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    if (a.pitch != 0) return;
    load_contiguous<half_row, Base::pitch, Base::count * half_row, Threads>(
        shared.numbers, a.spectrum + block * Base::count * half_row,
        count_in_block<Base::count>(a.count, block) * half_row, thread);
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    for (int row = thread; row < count_in_block<Base::count>(a.count, block); row += Threads) {
      Complex* const at = shared.numbers + row * Base::pitch;
      Complex v[points], last;
      if (a.pitch == 0) {
        unrolled<points>([&](auto i) { v[i] = at[i]; });
        last = at[points];
      } else {
        const Complex* bin = a.spectrum + block * Base::count + row;
        unrolled<points>([&](auto i) { v[i] = *bin, bin += a.pitch; });
        last = *bin;
      }
      from_row_bins<N>(v, last);
      transform<backwards>(v);
      unrolled<points>([&](auto i) { at[i] = scaled(v[i], 1.f / N); });
    }
  }

  TWIDDLE_HD static void step(Index<2>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    auto* const target = reinterpret_cast<Complex*>(a.target) + block * Base::count * points;
    store_contiguous<points, Base::pitch, Threads>(shared.numbers, target,
                                                   count_in_block<Base::count>(a.count, block) * points, thread);
  }
};

// The same for few rows, where the latency of one row counts and not the bandwidth: straight from and to global memory.
template <int N, int Threads>
struct DirectRows : RowSize<N> {
  using Registers = NoRegisters;
  static constexpr int threads = Threads, count = Threads, steps = 1;
  struct Shared {};
  template <class Arguments>
  TWIDDLE_HD static bool has(const Arguments& a, std::int64_t block, int thread) {
    return thread < count_in_block<count>(a.count, block);
  }
  // The first bin of a thread's row, and the distance between its bins.
  template <class Arguments>
  TWIDDLE_HD static auto bins(const Arguments& a, std::int64_t block, int thread) {
    return a.spectrum + (block * count + thread) * (a.pitch == 0 ? RowSize<N>::half_row : 1);
  }
  template <class Arguments>
  TWIDDLE_HD static std::int64_t pitch(const Arguments& a) {
    return a.pitch == 0 ? 1 : a.pitch;
  }
};

template <int N, int Threads>
struct DirectRowsForward : DirectRows<N, Threads> {
  using Base = DirectRows<N, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchForward;
  static constexpr int points = Base::points;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared&, Registers&) {
    if (!Base::has(a, block, thread)) return;
    Complex v[points];
    load_numbers(v, reinterpret_cast<const Complex*>(a.source) + (block * Base::count + thread) * points);
    transform<forwards>(v);
    const Complex last = to_row_bins<N>(v);
    Complex* const to = Base::bins(a, block, thread);
    const std::int64_t pitch = Base::pitch(a);
    unrolled<points>([&](auto bin) { to[bin * pitch] = v[bin]; });
    to[points * pitch] = last;
  }
};

template <int N, int Threads>
struct DirectRowsInverse : DirectRows<N, Threads> {
  using Base = DirectRows<N, Threads>;
  using typename Base::Shared, typename Base::Registers;
  using Arguments = BatchInverse;
  static constexpr int points = Base::points;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared&, Registers&) {
    if (!Base::has(a, block, thread)) return;
    const Complex* const from = Base::bins(a, block, thread);
    const std::int64_t pitch = Base::pitch(a);
    Complex v[points];
    unrolled<points>([&](auto bin) { v[bin] = from[bin * pitch]; });
    from_row_bins<N>(v, from[points * pitch]);
    transform<backwards>(v);
    unrolled<points>([&](auto i) { v[i] = scaled(v[i], 1.f / N); });
    store_numbers(v, reinterpret_cast<Complex*>(a.target) + (block * Base::count + thread) * points);
  }
};

}  // namespace twiddle::small_fft
