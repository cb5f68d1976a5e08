#pragma once
#include "apps/bench/cuda/block_steps.h"

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
// Replaces Z[k] and Z[m-k] by bins k and m - k of the row; `odd` was multiplied by e^(-2 pi i k / N).
TWIDDLE_HD constexpr void to_row_bins(Complex even, Complex odd, Complex& a, Complex& b) {
  a = even + odd, b = conj(even - odd);
}
// The inverse, without a factor of two: multiply `odd` by e^(2 pi i k / N) afterwards.
TWIDDLE_HD constexpr EvenOdd even_odd_of_bins(Complex a, Complex b) {
  return {a + conj(b), a - conj(b)};
}
TWIDDLE_HD constexpr void from_row_bins(Complex even, Complex odd, Complex& a, Complex& b) {
  a = {even.re - odd.im, even.im + odd.re}, b = {even.re + odd.im, odd.re - even.im};
}

// Replaces Z by bins 0 .. m - 1 of the row and returns bin m.
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

// A row's bins, `pitch` apart: 0 .. m - 1 in `v`, and bin m.
template <int Points>
TWIDDLE_HD void store_row(const Complex (&v)[Points], Complex last, Complex* bin, std::int64_t pitch) {
  unrolled<Points>([&](auto i) { *bin = v[i], bin += pitch; });
  *bin = last;
}
template <int Points>
TWIDDLE_HD Complex load_row(Complex (&v)[Points], const Complex* bin, std::int64_t pitch) {
  unrolled<Points>([&](auto i) { v[i] = *bin, bin += pitch; });
  return *bin;
}

// Each thread transforms PerThread rows, one after the other, in registers. Rows are loaded and stored through shared
// memory: if each thread accessed its own row in global memory, a warp's accesses would not be coalesced. [bin][row] is
// accessed directly, because adjacent threads have adjacent rows.
template <int N, int Threads, int PerThread>
struct ThreadRows : BlockThread {
  using BlockThread::BlockThread;
  static constexpr int points = N / 2, half_row = N / 2 + 1;
  static constexpr int threads = Threads, count = Threads * PerThread, forward_steps = 3, inverse_steps = 3;
  static constexpr int pitch = half_row | 1;  // odd: no bank conflicts
  static_assert(N % 2 == 0 && count % 2 == 0, "blocks begin at addresses that are aligned to 16 bytes");
  struct alignas(16) Shared {
    Complex numbers[count * pitch];
  };

  // The rows to shared memory, by coalesced loads.
  TWIDDLE_HD void forward(Index<0>, const BatchForward& a, Shared& shared) {
    load_contiguous<points, pitch, count * points, Threads>(shared.numbers, a.source + block * count * points,
                                                            count_in_block<count>(a.count, block) * points, thread);
  }

  // Each thread transforms its rows, in its registers.
  TWIDDLE_HD void forward(Index<1>, const BatchForward& a, Shared& shared) {
    for (int row = thread; row < count_in_block<count>(a.count, block); row += Threads) {
      Complex* const at = shared.numbers + row * pitch;
      Complex v[points];
      unrolled<points>([&](auto i) { v[i] = at[i]; });
      transform<forwards>(v);
      const Complex last = to_row_bins<N>(v);
      if (a.pitch == 0)
        store_row(v, last, at, 1);
      else
        store_row(v, last, a.spectrum + block * count + row, a.pitch);
    }
  }

  // The bins to [row][bin], by coalesced stores.
  TWIDDLE_HD void forward(Index<2>, const BatchForward& a, Shared& shared) {
    if (a.pitch != 0) return;
    store_contiguous<half_row, pitch, Threads>(shared.numbers, a.spectrum + block * count * half_row,
                                               count_in_block<count>(a.count, block) * half_row, thread);
  }

  // The bins from [row][bin] to shared memory.
  TWIDDLE_HD void inverse(Index<0>, const BatchInverse& a, Shared& shared) {
    if (a.pitch != 0) return;
    load_contiguous<half_row, pitch, count * half_row, Threads>(shared.numbers, a.spectrum + block * count * half_row,
                                                                count_in_block<count>(a.count, block) * half_row,
                                                                thread);
  }

  // Each thread transforms its rows back.
  TWIDDLE_HD void inverse(Index<1>, const BatchInverse& a, Shared& shared) {
    for (int row = thread; row < count_in_block<count>(a.count, block); row += Threads) {
      Complex* const at = shared.numbers + row * pitch;
      Complex v[points];
      const Complex last = a.pitch == 0 ? load_row(v, at, 1) : load_row(v, a.spectrum + block * count + row, a.pitch);
      from_row_bins<N>(v, last);
      transform<backwards>(v);
      unrolled<points>([&](auto i) { at[i] = scaled(v[i], 1.f / N); });
    }
  }

  // The rows to global memory.
  TWIDDLE_HD void inverse(Index<2>, const BatchInverse& a, Shared& shared) {
    store_contiguous<points, pitch, Threads>(shared.numbers, a.target + block * count * points,
                                             count_in_block<count>(a.count, block) * points, thread);
  }
};

// The same for few rows, where the latency of one row counts and not the bandwidth: accesses global memory directly.
template <int N, int Threads>
struct DirectRows : BlockThread {
  using BlockThread::BlockThread;
  static constexpr int points = N / 2, half_row = N / 2 + 1;
  static constexpr int threads = Threads, count = Threads, forward_steps = 1, inverse_steps = 1;
  struct Shared {};

  TWIDDLE_HD void forward(Index<0>, const BatchForward& a, Shared&) {
    if (thread >= count_in_block<count>(a.count, block)) return;
    Complex v[points];
    load_numbers(v, a.source + (block * count + thread) * points);
    transform<forwards>(v);
    const Complex last = to_row_bins<N>(v);
    Complex* const to = row_bins(a);
    const std::int64_t pitch = bin_pitch(a);
    unrolled<points>([&](auto bin) { to[bin * pitch] = v[bin]; });
    to[points * pitch] = last;
  }

  TWIDDLE_HD void inverse(Index<0>, const BatchInverse& a, Shared&) {
    if (thread >= count_in_block<count>(a.count, block)) return;
    const Complex* const from = row_bins(a);
    const std::int64_t pitch = bin_pitch(a);
    Complex v[points];
    unrolled<points>([&](auto bin) { v[bin] = from[bin * pitch]; });
    from_row_bins<N>(v, from[points * pitch]);
    transform<backwards>(v);
    unrolled<points>([&](auto i) { v[i] = scaled(v[i], 1.f / N); });
    store_numbers(v, a.target + (block * count + thread) * points);
  }

 private:
  // The first bin of the thread's row, and the distance between its bins.
  template <class Arguments>
  TWIDDLE_HD auto row_bins(const Arguments& a) const {
    return a.spectrum + (block * count + thread) * (a.pitch == 0 ? half_row : 1);
  }
  template <class Arguments>
  TWIDDLE_HD static std::int64_t bin_pitch(const Arguments& a) {
    return a.pitch == 0 ? 1 : a.pitch;
  }
};

}  // namespace twiddle::small_fft
