#pragma once
#include "fft/batched_fft.h"
#include "fft/cuda/batched/block_steps.h"
#include "framework/for_each.h"

// Complex transforms of columns: the second launch for planes that are too large for a block. The first one transformed
// their rows, to [row's bin][plane][row], where a column is contiguous. A block takes 16 columns that are adjacent in
// the spectrum, so that it accesses contiguous ranges of 128 bytes there. Several threads share a column, as a
// four-step FFT of N = A * B points (four_step_row.h).
namespace twiddle::small_fft {

// Columns are numbered so that consecutive ones are adjacent in the spectrum: index = outer * inner.value() + inner.
// Bin k of a column is at spectrum + outer * outer_bins + inner + k * pitch; its elements are contiguous in `rows`, as
// column outer * outer_column + inner * inner_column.
struct ColumnArguments {
  std::int64_t count;  // of columns
  Divisor inner;
  std::int64_t outer_bins, pitch, outer_column, inner_column;
  Complex *rows, *spectrum;
};

inline ColumnArguments column_arguments(const FftBatch& batch, Complex* rows, Complex* spectra) {
  const std::int64_t half_row = batch.width / 2 + 1;
  if (batch.layout == BinLayout::plane_major)
    return {.count = batch.count * half_row,
            .inner = Divisor(half_row),
            .outer_bins = batch.height * half_row,
            .pitch = half_row,
            .outer_column = 1,
            .inner_column = batch.count,
            .rows = rows,
            .spectrum = spectra};
  return {.count = batch.count * half_row,
          .inner = Divisor(batch.count),
          .outer_bins = batch.count,
          .pitch = half_row * batch.count,
          .outer_column = batch.count,
          .inner_column = 1,
          .rows = rows,
          .spectrum = spectra};
}

template <int N, int A, int Columns>
struct ColumnBlock {
  static constexpr int B = N / A, columns = Columns;
  static constexpr int lanes = B, threads = columns * lanes,
                       times = A / lanes;  // a thread has columns k1 = q + lanes i
  static_assert(A * B == N && 16 % lanes == 0 && A % lanes == 0 && Columns % 16 == 0);
  static constexpr int pitch = N + B + 1;
  static_assert(pitch % 2 == 1);  // no bank conflicts between the 16 threads of half a warp
  static constexpr int steps = 2;
  using Arguments = ColumnArguments;
  struct Registers {};
  struct alignas(16) Shared {
    Complex numbers[columns * pitch];
  };

  struct Share {  // which column of the block a thread has, and which part of it
    int column;
    int part;  // b of elements, or k1 of bins
    bool there;
    std::int64_t outer, inner;
  };
  // Adjacent threads have adjacent elements in `rows` (with a swizzle against bank conflicts) ...
  TWIDDLE_HD static Share by_elements(const Arguments& a, std::int64_t block, int thread) {
    constexpr int together = 16 / lanes;
    const int group = thread / lanes;
    return place(a, block, group / 16 * 16 + group % together * lanes + group / together % lanes, thread % lanes);
  }
  // ... or adjacent bins in the spectrum.
  TWIDDLE_HD static Share by_bins(const Arguments& a, std::int64_t block, int thread) {
    return place(a, block, thread % columns, thread / columns);
  }
  TWIDDLE_HD static Complex* elements(const Arguments& a, const Share& at) {
    return a.rows + (at.outer * a.outer_column + at.inner * a.inner_column) * N + at.part;
  }
  TWIDDLE_HD static Complex* bins(const Arguments& a, const Share& at) {
    return a.spectrum + at.outer * a.outer_bins + at.inner;
  }
  TWIDDLE_HD static int exchange_place(int column, int b) { return column * pitch + (A + 1) * b; }

 private:
  TWIDDLE_HD static Share place(const Arguments& a, std::int64_t block, int column, int part) {
    const std::int64_t index = block * columns + column, outer = a.inner.quotient(index);
    return {column, part, index < a.count, outer, index - outer * a.inner.value()};
  }
};

template <int N, int A, int Columns = 16>
struct ColumnsForward : ColumnBlock<N, A, Columns> {
  using Base = ColumnBlock<N, A, Columns>;
  using typename Base::Arguments, typename Base::Shared, typename Base::Registers;
  static constexpr int B = Base::B;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto place = Base::by_elements(a, block, thread);
    if (!place.there) return;
    const Complex* const from = Base::elements(a, place);
    Complex v[A];
    unrolled<A>([&](auto i) { v[i] = from[B * i]; });
    transform<forwards>(v);
    Complex* const at = shared.numbers + Base::exchange_place(place.column, place.part);
    at[0] = v[0];
    unrolled<A - 1>([&](auto before) {
      constexpr int column = decltype(before)::value + 1;
      at[column] = v[column] * root<N>(column * place.part);
    });
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto place = Base::by_bins(a, block, thread);
    if (!place.there) return;
    Complex* const to = Base::bins(a, place);
    unrolled<Base::times>([&](auto i) {
      const int column = place.part + Base::lanes * i;
      Complex v[B];
      unrolled<B>([&](auto b) { v[b] = shared.numbers[Base::exchange_place(place.column, b) + column]; });
      transform<forwards>(v);
      unrolled<B>([&](auto k2) { to[(column + A * k2) * a.pitch] = v[k2]; });
    });
  }
};

template <int N, int A, int Columns = 16>
struct ColumnsInverse : ColumnBlock<N, A, Columns> {
  using Base = ColumnBlock<N, A, Columns>;
  using typename Base::Arguments, typename Base::Shared, typename Base::Registers;
  static constexpr int B = Base::B;

  TWIDDLE_HD static void step(Index<0>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto place = Base::by_bins(a, block, thread);
    if (!place.there) return;
    const Complex* const from = Base::bins(a, place);
    Complex v[Base::times][B];
    unrolled<Base::times>([&](auto i) {
      const int column = place.part + Base::lanes * i;
      unrolled<B>([&](auto k2) { v[i][k2] = from[(column + A * k2) * a.pitch]; });
    });
    unrolled<Base::times>([&](auto i) {
      const int column = place.part + Base::lanes * i;
      transform<backwards>(v[i]);
      unrolled<B>([&](auto b) {
        shared.numbers[Base::exchange_place(place.column, b) + column] =
            v[i][b] * conj(root<N>(column * decltype(b)::value));
      });
    });
  }

  TWIDDLE_HD static void step(Index<1>, const Arguments& a, std::int64_t block, int thread, Shared& shared,
                              Registers&) {
    const auto place = Base::by_elements(a, block, thread);
    if (!place.there) return;
    const Complex* const at = shared.numbers + Base::exchange_place(place.column, place.part);
    Complex v[A];
    unrolled<A>([&](auto column) { v[column] = at[column]; });
    transform<backwards>(v);
    Complex* const to = Base::elements(a, place);
    unrolled<A>([&](auto i) { to[B * i] = scaled(v[i], 1.f / N); });
  }
};

}  // namespace twiddle::small_fft
